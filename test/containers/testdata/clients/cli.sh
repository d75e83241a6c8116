# What the docker command is used for, with the program that $1 names.
set -e
$1 run --rm $BB echo run ok | grep "run ok"
$1 run --name x -d -p 8001:80 $BB httpd -f -p 80
test "$($1 exec x id -u)" = 0
$1 cp x:/etc/passwd /tmp/p
$1 cp /tmp/p x:/tmp/p
$1 logs x
$1 port x | grep 127.0.0.1:8001
$1 top x | grep httpd
$1 stats --no-stream x | grep " x "
test "$($1 inspect -f '{{.Name}}' x)" = /x
$1 rm -f x
$1 volume create v && $1 volume rm v
$1 network create n && $1 network rm n
test "$(echo typed | $1 run -i --rm $BB cat)" = typed
for i in 1 2 3 4 5; do
	code=0
	$1 run --rm $BB /nonexistent || code=$?
	test $code = 127
done
$1 build -t built --build-arg WHAT=cli $CONTEXT
test "$($1 run --rm built cat /made)" = cli
$1 images | grep built
$1 rmi built
$1 run --rm -v "$PWD/app":/w -w /w $BB sh -c 'cat note > copied; touch .envrc'
test "$(cat app/copied)" = noted
test ! -e app/.envrc
echo "cli done"
