// What dockerode is used for, against $DOCKER_HOST: run, logs, exec with input, archive, stats, list, remove.
'use strict';
const assert = require('node:assert');
const { PassThrough } = require('node:stream');
const Docker = require('dockerode');
const image = process.env.BB;

async function text(stream) {
  let out = '';
  for await (const chunk of stream) out += chunk;
  return out;
}

async function main() {
  const docker = new Docker({ socketPath: process.env.DOCKER_HOST.replace('unix://', '') });
  assert.ok((await docker.version()).ApiVersion);
  const out = new PassThrough();
  const [result, gone] = await docker.run(image, ['sh', '-c', 'echo from run'], out, { HostConfig: { AutoRemove: false } });
  out.end();
  assert.strictEqual(result.StatusCode, 0);
  assert.match(await text(out), /from run/);
  await gone.remove({ v: true, force: true });

  const c = await docker.createContainer({ Image: image, name: 'ode', Cmd: ['sleep', '1000'], Labels: { of: 'ode' }, ExposedPorts: { '80/tcp': {} }, HostConfig: { PortBindings: { '80/tcp': [{ HostPort: '' }] }, NetworkMode: 'bridge' } });
  await c.start();
  const exec = await c.exec({ Cmd: ['sh', '-c', 'cat; echo end'], AttachStdin: true, AttachStdout: true, AttachStderr: true });
  const stream = await exec.start({ hijack: true, stdin: true });
  const got = new PassThrough();
  docker.modem.demuxStream(stream, got, got);
  stream.on('end', () => got.end());
  stream.write('typed\n');
  stream.end();
  assert.strictEqual(await text(got), 'typed\nend\n');
  assert.strictEqual((await exec.inspect()).ExitCode, 0);
  assert.match(await text(await c.getArchive({ path: '/etc/passwd' })), /root/);
  const stats = await c.stats({ stream: false });
  assert.strictEqual(stats.name, '/ode');
  const list = await docker.listContainers({ all: true, filters: { label: ['of=ode'] } });
  assert.deepStrictEqual(list.map((one) => one.Names), [['/ode']]);
  const logs = await c.logs({ stdout: true, stderr: true, follow: false });
  assert.ok(Buffer.isBuffer(logs) || typeof logs === 'string');
  await c.rename({ name: 'other' });
  await c.stop({ t: 0 });
  await c.remove({ v: true });
  const volume = await docker.createVolume({ Name: 'odev' });
  await volume.inspect();
  await docker.getVolume('odev').remove();
  const network = await docker.createNetwork({ Name: 'oden', CheckDuplicate: true });
  await network.remove();
  const built = await docker.buildImage({ context: process.env.CONTEXT, src: ['Dockerfile', 'file'] }, { t: 'ode:built', buildargs: { WHAT: 'ode' } });
  const lines = await new Promise((yes, no) => docker.modem.followProgress(built, (err, all) => (err ? no(err) : yes(all))));
  assert.ok(lines.some((l) => l.aux && l.aux.ID), JSON.stringify(lines));
  console.log('dockerode done');
}

main().catch((err) => { console.error(err); process.exit(1); });
