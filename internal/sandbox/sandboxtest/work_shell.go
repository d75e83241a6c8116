package sandboxtest

// shellPieces: redirections, errors, modes and what else a shell does.
func shellPieces() []workPiece {
	return []workPiece{
		{name: "redirections", script: `echo a >f; echo b >>f; cat <f; echo c >|f; cat f; exec 3<>f; read x <&3; echo "read $x"; echo d >&3; exec 3>&-; cat f; : >empty; >also; cat <<EOT >here
document
EOT
{ echo out; echo err >&2; } >both 2>&1; echo n >/dev/null; echo dropped 2>/dev/null >&2; set -C; echo x >f; echo $?`},
		{name: "redirections to /dev", script: `echo 1 >/dev/stdout; echo 2 >/dev/stderr; echo 3 >/dev/fd/1; echo 4 >/dev/fd/2; echo 5 >/proc/self/fd/1; echo 6 >>/dev/stdout; echo 7 >>/proc/self/fd/2
exec 5>f; echo 8 >/dev/fd/5; echo 9 >>/proc/self/fd/5; exec 5>&-; cat f; cat /dev/null; echo in | cat /dev/stdin; echo in | cat /proc/self/fd/0; head -c 10 /dev/zero | wc -c; echo x >/dev/full; echo $?; head -c 8 /dev/urandom | wc -c; tee /dev/stderr </dev/null; echo t | tee /dev/stderr >/dev/null`},
		{name: "redirections to /dev of files", script: `sh -c 'echo a >/dev/stdout; echo b >>/dev/stdout; echo c >/proc/self/fd/1' >f; cat f; sh -c 'echo a >/dev/stderr; echo b >>/dev/fd/2' 2>g; cat g; sh -c 'echo 1 >>/proc/self/fd/1; echo 2 >>/proc/self/fd/1' >>h; cat h; sh -c 'cat /dev/stdin' <f; sh -c 'cat </proc/self/fd/3' 3<f; sh -c 'echo x >/proc/$$/fd/4' 4>p; cat p; sh -c 'echo y 1<>/dev/fd/4' 4<>p; cat p`},
		{name: "process substitution and here strings", script: `bash -c 'diff <(echo a) <(echo b); cat <<<here; echo x > >(cat); wait; read -r l < <(echo line); echo $l; coproc cat; echo c >&${COPROC[1]}; read -r z <&${COPROC[0]}; echo $z; mapfile -t m < <(seq 3); echo ${m[@]}'`, mask: []string{`/dev/fd/\d+`}},
		{name: "umask 077", script: `umask 077; touch f; mkdir d; echo x >g; ln -s g l; mkfifo p; cp g h; install -m 755 g i; mkdir -m 1777 t; umask; python3 -c 'open("py","w")' 2>/dev/null || touch py; git init -q r; stat -c '%a %n' f d g p h i t r r/.git py`},
		{name: "umask 000", script: `umask 000; touch f; mkdir d; echo x >g; mkfifo p; cp g h; tee t </dev/null; mkdir -p a/b/c; stat -c '%a %n' f d g p h t a/b/c; umask 027; touch z; mkdir y; stat -c '%a %n' z y`},
		{name: "fifo", script: `mkfifo p; (for i in 1 2 3; do echo $i; done >p) & cat p; wait; cat <p >out & echo late >p; wait; cat out; (exec 3<>p; echo rw >&3; read x <&3; echo $x); mkfifo q; yes >q & head -2 q; wait $!; echo $?; test -p p && ls -l p | cut -c1-10`},
		{name: "errors", script: `cat none; cat none/x; mkdir d; mkdir d; cat d; echo x >d; echo x >none/x; touch f; cat f/x; mkdir f/x; ls f/; rmdir none; rmdir f; mkdir d/e; rmdir d; mv none x; mv d f; mv f d/e/x/; ln none l; ln -s f s; ln -s g s; ln f s; ln d h; rm d; rm none; cp none x; cp f none/x; cd none; cd f
ln -s loop loop; cat loop; echo x >loop; cd loop; touch loop/x; ln -s none dangling; cat dangling; mkdir dangling; rmdir dangling; unlink d; unlink none; touch ''; mkdir ''; cat ''; ./f; ./none; ./d; sh none; echo $?; touch "$(printf '%0300d' 0)"; chmod +x none; rm -r none; readlink f; mknod; truncate -s 1 d; echo >/dev/none/x; tee none/x </dev/null; :>f/`},
		{name: "trailing slashes", script: `mkdir d/; mkdir -p a/b/c/; mv d/ e/; ls -F; touch f; touch f/; cat f/; mv f/ g; mv f g/; mv e/ f/; rmdir e/; rm f/; ln -s a l; ls l/; rm l/; rmdir l/; mkdir l/; ln -s x y/; cp -r a/ z/; ls z; mv z/ zz; test -d zz/ && echo yes; echo x >new/; mkdir d//; mkdir d/./; mkdir d/.; mkdir d/..; mkdir ./q/.; rmdir d/; mkdir ../$(basename "$PWD")/up; mkdir -p ./././p/../r; ls`},
		{name: "dangling links written through", script: `ln -s target l; echo x >l; cat target; ln -s sub/none m; echo x >m; mkdir sub; echo x >m; cat sub/none; ln -s "$PWD/abs" n; echo abs >n; cat abs; ln -s n o; echo two >>o; cat abs; ln -s "$PWD/sub/./deep" p; touch p; ls; ln -sfn sub q; echo in >q/in; ls sub; cp --remove-destination m r; readlink l m; ln -snf abs q; cat q; ln -s . dot; echo d >dot/dot/dot/d; cat d; set -C; ln -s nn ex; echo x >ex; echo $?; ls nn`},
		{name: "exec bit and scripts", script: `printf '#!/bin/sh\necho ran "$@"; exit 5\n' >s; ./s; echo $?; chmod +x s; ./s a b; echo $?; mkdir bin; mv s bin; PATH=$PWD/bin:$PATH; s c; cp /bin/true t; ./t && echo t; printf '#!/usr/bin/env -S sh -e\nfalse\necho not\n' >e; chmod 755 e; ./e; echo $?; printf '#!/no/such\n' >n; chmod 755 n; ./n; echo $?; printf '#!%s\n' "$PWD/bin/s" >i; chmod 755 i; ./i x; chmod 000 e; stat -c %a e`, mask: []string{`(?m)^sh: \d+: `}},
		{name: "sed, sort, awk, find, xargs", script: `seq 1 20000 | sort -rn >n; sort -T . -S 100K -o n n; md5sum n; sed -i 's/^1\(.*\)/one\1/;5d' n; md5sum n; sed -i.bak 2d n; ls; awk '{print > ("p" ($1 % 3))}' n.bak; wc -l p*; find . -name 'p*' -print0 | sort -z | xargs -0 -n1 -P3 gzip -n; ls; split -n 4 n s; cat s* | cmp - n; find . -name 's*' -delete; perl -pi -e 's/2/two/' n; md5sum n`},
		{name: "tar and cp -a", script: `mkdir -p t/d/e; echo a >t/a; echo b >t/d/b; ln t/a t/hard; ln -s ../a t/d/soft; chmod 640 t/a; chmod 1777 t/d/e; mkfifo t/p; find t -exec touch -h -d '2001-02-03 04:05:06.789 UTC' {} +; touch -h -d @5 t/d/soft
tar cf t.tar --owner=0 --group=0 --numeric-owner --sort=name --mtime=@0 t; md5sum t.tar; mkdir x; tar xpf t.tar --no-same-owner -C x; cp -a t y; cp -al t z; diff -r t z 2>&1; for i in t y z; do (cd $i; find . -printf '%P %M %n %Ts %l\n' | sort); done; tar czf - t | tar tzf - | sort; rsync --version >/dev/null 2>&1 && rsync -a t/ rs/ && ls rs; cp -r --reflink=auto t/a u; cp --sparse=always t/a v; mv x xx; rm -rf y`, opaque: []string{"*.tar"}},
		{name: "touch and times", script: `touch -d '2020-01-02 03:04:05.123456789 UTC' a; stat -c '%y' a; touch -r a b; stat -c '%y' b; touch -a -d @100 b; stat -c '%X %Y' b; touch -c none; ls; test a -nt b; echo $?; ln -s a l; touch -h -d @7 l; stat -c %Y l a; cp -p a c; stat -c %y c; mkdir d; touch -d @9 d; stat -c %Y d; touch -d garbage x; echo $?`},
		{name: "moving over file systems", script: `d=$(mktemp -d /tmp/work-XXXXXX); mkdir s; echo a >s/a; ln -s a s/l; chmod 600 s/a; mv s "$d/"; ls "$d/s"; stat -c %a "$d/s/a"; mv "$d/s" back; ls -A back; echo t >"$d/t"; mv "$d/t" back/a; cat back/a; cp -a back "$d/c"; ls "$d/c"; ln back/a "$d/h" 2>/dev/null; rm -rf "$d"; mktemp -u >/dev/null && echo mktemp; f=$(mktemp); echo x >"$f"; mv "$f" .tmp; cat .tmp; stat -c %a .tmp`},
		{name: "long paths", chance: true, script: `n=$(printf '%0100d' 0); (i=0; while [ $i -lt 55 ]; do mkdir $n && cd $n || break; i=$((i+1)); done; echo $i; echo deep >f; cat f; mkdir d; mv f d/g; ln -s d/g l; cat l; touch ../../up; rm l; find . | wc -l; /bin/pwd -P | wc -c); rm -r 0*; ls | wc -l`, mask: []string{`(?m)^\d{4,5}$`}},
		{name: "odd names", script: `touch -- 'a b' '-x' '*' "$(printf 'new\nline')" "$(printf 'b\377d')" 'ünï' '$HOME' "'" '"' '...' ' ' '~' '#x#' 'x~' '.hidden' 'CON'; ls -A | od -c | head -30; mkdir "$(printf 'd\377')"; echo x >"$(printf 'd\377/f')"; mv -- "$(printf 'b\377d')" ok; rm -- '-x'; ls -Q`},
		{name: "read-only directory", user: true, script: `mkdir d; touch d/f; chmod 555 d; touch d/g; echo $?; rm d/f; echo $?; mv d/f g; mkdir d/x; ln -s a d/l; echo x >>d/f; echo $?; chmod 444 d/f; echo y >d/f; echo $?; mkdir n; chmod 000 n; ls n; cd n; touch n/x; chmod 111 d; ls d; cat d/f; chmod 700 d; mknod c c 1 3; stat -c %a d/f`, mask: []string{`can't cd to n.*`}},
	}
}

// filePieces: what has to do with the standard streams and directories.
func filePieces() []workPiece {
	reader := `wc -lc; read x; echo "$? $x"; test -t 0; echo $?`
	return []workPiece{
		{name: "stdin from a file", stdin: stdinFile, script: `stat -Lc %F /dev/stdin; read a; echo "$a"; cat; ` + reader},
		{name: "stdin from a pipe", stdin: stdinPipe, script: `stat -Lc %F /dev/stdin; read a; echo "$a"; cat; ` + reader},
		{name: "stdin from /dev/null", script: `stat -Lc %F /dev/stdin; cat; ` + reader},
		{name: "stdin closed", script: `exec <&-; cat; echo $?; read x; echo $?; ls /proc/self/fd/0 2>/dev/null | wc -l; : >f; sh -c 'cat <f; echo $?'`},
		{name: "stdout and stderr closed", script: `sh -c 'echo x >&-; echo $?'; sh -c 'echo x >&-' 2>&-; echo $?; exec 2>&-; cat none; echo $?; sh -c 'exec >&-; echo f >f; cat f >&2; echo $? >code'; cat f code`},
		{name: "cat without a shell", stdin: stdinPipe, argv: []string{"cat"}},
		{name: "arguments as they are", argv: []string{"printf", "[%s]", "", " ", "a b", "*", "$HOME", "`id`", "\\n", "'", "\"", "-x", "--", "ü", "\xff", "new\nline"}},
		{name: "only the given descriptors", script: `for i in 3 4 5 6 7 8 9; do test -e /proc/$$/fd/$i && readlink /proc/$$/fd/$i; done; exec 3>x; readlink /proc/$$/fd/3`},
		{name: "working directory", setup: `mkdir -p a/b; ln -s a l`, script: `pwd; /bin/pwd -P; cd a/b; pwd; cd ../..; pwd; cd l; pwd; pwd -P; cd -P ../l/b; pwd; cd /; cd "$OLDPWD"; pwd; readlink /proc/self/cwd; ls -di . | wc -l; mkdir gone; cd gone; rmdir ../gone; ls; touch x; mkdir x; pwd -P; cd ..; pwd`, mask: []string{`(?m)^sh: \d+: `}},
		{name: "environment", script: `echo "$PWD"; test -n "$HOME" -a -n "$PATH" -a -d "$HOME" && echo set; X=1 sh -c 'echo $X'; export Y='a b
c'; sh -c 'echo "$Y"'; env -i A=b env; command -v sh cat ls; which sh; echo "$PATH" "$HOME"; unset PATH; /bin/echo no path; cd; cd ~; pwd`},
		{name: "/tmp", script: `d=$(mktemp -d); cd "$d"; echo x >f; ln -s f l; mkfifo p; cat l; chmod 600 f; ls; stat -c %a /tmp . f; mkdir -p a/b; mv f a/b; touch "$PWD/g"; tar cf - . | tar tf - | sort; sh -c 'umask 077; touch h; stat -c %a h'; cd /; rm -rf "$d"; ls -d "$d"; f=$(TMPDIR=/var/tmp mktemp); test -f "$f" && rm "$f"; echo x >/dev/shm/work$$; cat /dev/shm/work$$; rm /dev/shm/work$$`, mask: []string{`tmp\.\w+`}},
	}
}

// processPieces: children, signals and exit codes.
func processPieces() []workPiece {
	return append([]workPiece{
		{name: "pipelines", script: `seq 100000 | tail -1; yes | head -1; echo $?; (exit 3) | true; echo $?; true | (exit 4); echo $?; ! true; echo $?; bash -c 'set -o pipefail; yes | head -1; echo $? ${PIPESTATUS[@]}; false | true; echo $?'; seq 1000000 | sort -n | uniq | wc -l; cat /dev/zero | head -c 100000000 | wc -c; dd if=/dev/zero bs=64k count=64 2>/dev/null | cksum`},
		{name: "background", script: `sleep 0.1 & p=$!; wait $p; echo $?; (sleep 0.05; echo late) & (sleep 0.2; echo later) & wait; sh -c 'exit 9' & wait $!; echo $?; sleep 100 & kill $!; wait $!; echo $?; jobs; for i in 1 2 3 4 5 6 7 8; do (echo $i >bg$i) & done; wait; cat bg*; (sh -c 'sleep 0.1; echo orphan >orphan' &) ; until test -s orphan; do sleep 0.05; done; cat orphan; nohup sh -c 'echo hup' 2>/dev/null </dev/null; setsid -w sh -c 'exit 6'; echo $?; timeout 0.1 sleep 5; echo $?; timeout -s KILL 0.1 sleep 5; echo $?`, mask: []string{`(?m)(^(Killed|Terminated)\n)+`}},
		{name: "signals", script: `sh -c 'trap "echo usr1; exit 7" USR1; kill -USR1 $$; sleep 1'; echo $?; sh -c 'trap "" TERM; kill $$; echo survived'; sh -c 'kill -9 $$' 2>/dev/null; echo $?; bash -c 'trap "echo int; exit 3" INT; kill -INT $$'; echo $?; sh -c 'trap "echo bye" EXIT; exit 2'; echo $?; kill -0 $$ && echo alive; kill -0 999999; (trap 'echo chld' CHLD; sleep 0.05 & wait); sleep 50 & kill -STOP $!; kill -CONT $!; kill -TERM $!; wait $! 2>/dev/null; test $? -gt 128 && echo gone; bash -c 'ulimit -c 0; kill -SEGV $$' 2>/dev/null; echo $?; setsid -w sh -c 'kill -TERM 0'; echo $?; kill -l 9 15`,
			mask: []string{`(?m)^sh: \d+: `, `(?m)^(Terminated|Killed|Quit)\n`}},
		{name: "own processes", script: `sleep 30 & sleep 0.5; ls -d /proc/$! >/dev/null && echo there; tr '\0' ' ' </proc/$!/cmdline; ps -o comm= -p $! 2>/dev/null; kill $!; wait $! 2>/dev/null; test -d /proc/$!; echo $?; test -r /proc/self/status && grep -c . /proc/self/stat; readlink /proc/self/exe | xargs basename; cat /proc/self/comm; test -n "$(cat /proc/meminfo /proc/cpuinfo /proc/uptime /proc/loadavg | head -c 1)" && echo info; nproc; getconf PAGESIZE; uname -s; date +%Y | cut -c1-2; tty; test -r /proc/sys/kernel/hostname && echo host; nice -n 5 nice; sync; sleep 0; id -u >/dev/null; hostname >/dev/null; df . | wc -l; mount >/dev/null && echo mounts; free >/dev/null; uptime >/dev/null && echo up`},
		{name: "killed by its own signal", argv: []string{"sh", "-c", "kill -KILL $$"}},
		{name: "ended by SIGTERM", argv: []string{"sh", "-c", "kill -TERM $$; sleep 5"}},
		{name: "ended by SIGINT", argv: []string{"sh", "-c", "kill -INT $$; sleep 5"}},
		{name: "ended by SIGHUP", argv: []string{"sh", "-c", "kill -HUP $$; sleep 5"}},
		{name: "ended by SIGABRT", argv: []string{"sh", "-c", "ulimit -c 0; kill -ABRT $$"}},
		{name: "ended by SIGPIPE", argv: []string{"sh", "-c", "kill -PIPE $$"}},
		{name: "ended by SIGUSR1", argv: []string{"sh", "-c", "kill -USR1 $$"}},
		{name: "ended by a real-time signal", argv: []string{"bash", "-c", "kill -RTMIN $$"}},
		{name: "no output at all", argv: []string{"true"}},
		{name: "large output", argv: []string{"sh", "-c", "seq 300000; seq 100000 >&2"}},
		{name: "binary output", argv: []string{"sh", "-c", `printf '\000\001\377\033[31m\r\n\000'; head -c 70000 /bin/sh`}},
		{name: "child outlived by nobody", script: `for i in $(seq 50); do sh -c "exit $i" & done; wait; echo done; for i in $(seq 200); do /bin/true; done; echo ok`},
	}, exitCodePieces()...)
}

func exitCodePieces() (pieces []workPiece) {
	for _, code := range []string{"0", "1", "2", "3", "64", "100", "123", "124", "125", "126", "127", "128", "129", "137", "143", "192", "254", "255"} {
		pieces = append(pieces, workPiece{name: "exit code " + code, argv: []string{"sh", "-c", "exit " + code}})
	}
	return pieces
}
