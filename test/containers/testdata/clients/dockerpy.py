import io, os, tarfile
import docker

image = os.environ["BB"]
client = docker.from_env(timeout=60)
assert client.ping()
assert client.containers.run(image, ["echo", "from run"], remove=True) == b"from run\n"
c = client.containers.run(image, ["sleep", "1000"], name="py", detach=True, labels={"of": "py"}, ports={"80/tcp": None}, mem_limit="32m", environment={"A": "b"})
c.reload()
assert c.status == "running" and c.attrs["HostConfig"]["LogConfig"]["Type"] == "json-file", c.attrs["HostConfig"]
code, out = c.exec_run(["sh", "-c", "echo in exec; exit 4"])
assert (code, out) == (4, b"in exec\n"), (code, out)
data = io.BytesIO()
with tarfile.open(fileobj=data, mode="w") as tar:
    info = tarfile.TarInfo("put")
    info.size = 3
    tar.addfile(info, io.BytesIO(b"put"))
assert c.put_archive("/tmp", data.getvalue())
stream, stat = c.get_archive("/tmp/put")
assert b"put" in b"".join(stream) and stat["name"] == "put", stat
assert c.stats(stream=False)["name"] == "/py"
assert c.top()["Processes"]
assert [x.name for x in client.containers.list(filters={"label": "of=py"})] == ["py"]
network = client.networks.create("pynet", driver="bridge", check_duplicate=True)
network.connect(c, aliases=["alias"])
network.reload()
assert c in network.containers
network.disconnect(c)
network.remove()
volume = client.volumes.create("pyvol", labels={"of": "py"})
assert client.containers.run(image, ["sh", "-c", "echo kept >/v/x; cat /v/x"], volumes={"pyvol": {"bind": "/v", "mode": "rw"}}, remove=True) == b"kept\n"
c.stop(timeout=0)
c.remove(v=False)
volume.remove()
made, log = client.images.build(path=os.environ["CONTEXT"], tag="py:built", buildargs={"WHAT": "py"}, rm=True)
assert client.containers.run("py:built", ["cat", "/made"], remove=True) == b"py\n"
assert client.info()["Containers"] == 0 and client.version()["ApiVersion"]
print("docker-py done")
