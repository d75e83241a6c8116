'use strict';
const assert = require('node:assert');
const { GenericContainer, Wait, Network } = require('testcontainers');
const image = process.env.BB;

async function main() {
  const network = await new Network().start();
  const server = await new GenericContainer(image)
    .withNetwork(network).withNetworkAliases('server').withExposedPorts(8000).withEnvironment({ WHAT: 'page' })
    .withCopyContentToContainer([{ content: 'the page', target: '/www/page' }])
    .withCommand(['sh', '-c', 'echo ready; httpd -f -p 8000 -h /www'])
    .withLabels({ of: 'tc' }).withTmpFs({ '/scratch': 'rw,size=4m' })
    .withWaitStrategy(Wait.forAll([Wait.forLogMessage('ready'), Wait.forListeningPorts()])).withStartupTimeout(60000)
    .start();
  const url = `http://${server.getHost()}:${server.getMappedPort(8000)}/page`;
  assert.strictEqual(await (await fetch(url)).text(), 'the page');
  const ran = await server.exec(['sh', '-c', 'echo in exec; exit 3'], { workingDir: '/', user: '0' });
  assert.strictEqual(ran.exitCode, 3);
  assert.match(ran.output, /in exec/);
  const client = await new GenericContainer(image).withNetwork(network).withCommand(['sh', '-c', 'wget -q -O- http://server:8000/page; echo; echo fetched; sleep 1000']).withWaitStrategy(Wait.forLogMessage('fetched')).withStartupTimeout(60000).start();
  await client.stop();
  await server.restart();
  const built = await GenericContainer.fromDockerfile(process.env.CONTEXT).withBuildArgs({ WHAT: 'tc' }).build('tc:built', { deleteOnExit: false });
  const own = await built.withCommand(['sh', '-c', 'cat /made; sleep 1000']).withWaitStrategy(Wait.forLogMessage('tc')).withStartupTimeout(60000).start();
  await own.stop();
  await server.stop({ remove: true, removeVolumes: true });
  await network.stop();
  console.log('testcontainers done');
}

main().catch((err) => { console.error(err); process.exit(1); });
