# What Compose is used for, with the program that $1 names.
set -e
$1 up -d
$1 ps
for i in $(seq 50); do $1 logs client | grep -q "from the context" && break; sleep 0.2; done
$1 logs client | grep "from the context"
$1 exec -T web echo in exec | grep "in exec"
$1 port web 8000 | grep 127.0.0.1
$1 run --rm made | grep composed
$1 down -v --remove-orphans
test -z "$(docker ps -aq)"
test -z "$(docker volume ls -q)"
cd app
$1 up -d
for i in $(seq 100); do test -e made && break; sleep 0.2; done
test "$(cat made)" = noted
echo changed > note
$1 exec -T dev sh -c 'cat note > again'
test "$(cat again)" = changed
$1 down
echo "compose done"
