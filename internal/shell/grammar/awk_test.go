package grammar

import "testing"

func TestAwkProves(t *testing.T) {
	for _, program := range []string{
		"", "{print}", "{print $1}", "{ print $NF }", "NR==1", "NR > 5", "$1 > 5 {print}", "/error/", "/a\\/b/ {print}", "!/x/", "$1 ~ /x|y/", "BEGIN { FS=\":\" } { print $1 }",
		"{ s += $1 } END { print s/NR }", "{ a[$1]++ } END { for (k in a) print k, a[k] }", "{ printf \"%s\\n\", $2 }", "{ printf(\"%d\\n\", $1) }",
		"{ print (a>b) }", "{ print (a > b ? a : b) }", "{ print a[1>2] }", "{ if ($1 > 3) print \"big\"; else print \"small\" }", "{ while (i < 3) { i++; print i } }",
		"$1 > 1 { print }\n$2 > 2 { print }", "{ print \"x\"\n }\n$1 > 2", "{ print x; y = a > b }", "{print \"a | b > c\"}", "{ print \"system(1)\" }", "/system|getline/ { print }",
		"{ x = \"\\\"; y\" } # system(\"id\")", "{ print } # a comment > f\n{ print }", "{ print length, length($0), substr($0, 2) }", "{ gsub(/[^a-z]/, \"\"); print toupper($1) }",
		"{ gsub(/[]]/, \"\") }", "/[[:space:]]+$/", "{ print $1/$2, (a+b)/2, a[1]/2, 3/4, \"6\"/2 }", "{ x /= 2 }", "a || b && c { print }", "{ $1 = $1 } 1", "1 ? /a/ : /b/",
		"function_call", "{ exit /x/ }", "{ print \\\n $1 }", "{ print a,\n b }", "{ next } END { exit 1 }", "{ do { x-- } while (x) }", "{ for (i = 1; i <= NF; i++) print $i }", "{ switch (x) { case /a/: print; default: print } }",
		"{ print -x, +x, x ^ 2, x % 2, x ~ y, !x, $1 != 2, x * 3 }", "{ x++; ++x; x--; print x++ + ++y }",
	} {
		if err := awk(program); err != nil {
			t.Errorf("%q: %v; want a proof", program, err)
		}
	}
}

// TestAwkRefuses: commands, files and the environment, also where only some
// awk reads them: a slash that divides in one and begins a regular expression
// in another hides what stands behind it.
func TestAwkRefuses(t *testing.T) {
	for _, program := range []string{
		`BEGIN{system("id")}`, `BEGIN{system ("id")}`, "BEGIN{system\\\n(\"id\")}", `BEGIN{awk::system("id")}`, `BEGIN{x="id"; x | getline}`, `BEGIN{"id" | getline x}`, `BEGIN{getline < "/etc/shadow"}`,
		`BEGIN{while ((getline l < "f") > 0) print l}`, `{print | "sh"}`, `{print "x" | "sh"}`, `{printf "x" | "sh"}`, `{print |& "sh"}`, `{print > "f"}`, `{print>"x"}`, `{print>>"x"}`, `{print $1, $2 > "x"}`,
		`{print ($1) > "x"}`, `{print ($1)($2) > "x"}`, `{print($1)>"x"}`, `{printf "%s", $1 > $2}`, `{printf("%s", $1) > "f"}`, `{print (a>b) > "f"}`, `{print a[1] > "f"}`, `{ if (x) print > "f" }`, `{ if (x) print; else print > "f" }`,
		"{print \"x\",\n\"y\" > \"f\"}", "{print \"x\", # c\n\"y\" > \"f\"}", "{print \"x\" \\\n > \"f\"}", "{print x &&\ny > \"f\"}", "{print (1,\n2) > \"f\"}", "{print (1\n) > \"f\"}", "{print a ? b :\nc > \"f\"}", "{print\n\"x\" > \"f\"}",
		`{print ENVIRON["SECRET"]}`, `{print 1ENVIRON["SECRET"]}`, `{print 0xENVIRON["SECRET"]}`, `{x = 1close("f")}`, `{print 1.ENVIRON["x"]}`, `{print PROCINFO["pid"]}`, `{print ARGV[1]}`, `BEGIN{ARGV[ARGC++]="/etc/shadow"}`, `BEGIN{SYMTAB["x"]}`,
		`BEGIN{f="system"; @f("id")}`, `@load "fork"`, `@include "x"`, `function f(x) { print x }`, `func f(x) { print x }`, `BEGIN{extension("x")}`, `{close("x")}`, `{fflush()}`, `{nextfile}`,
		`BEGIN{ x=1; print x++ / system("id") / 1 }`, `BEGIN{ print x-- / getline / 1 }`, `BEGIN{ exit /"/ || system("id") || /"/ }`, `BEGIN{ if (1) /"/; system("id"); if (1) /"/ }`, "BEGIN{ if (1)\n/\"/; system(\"id\"); if (1) /\"/ }",
		`BEGIN{ while ((x)) /"/; system("id"); while (x) /"/ }`, `BEGIN{ for (;;) /"/; system("id"); for (;;) /"/ }`, `BEGIN{ do x; while (1) /"/; system("id"); /"/ }`, `{ print length /"/; system("id"); x = length /"/ }`, `{ return /"/; system("id") /"/ }`,
		"BEGIN{ x=1; print x \\\n / system(\"id\") / 1 }", "BEGIN{ x=1; print x \f / system(\"id\") / 1 }", "BEGIN{ x=1; print x \v / system(\"id\") / 1 }", "BEGIN { case /\"/: system(\"id\") /\"/ }",
		`BEGIN{ x = (/[]/"[(]/ || system("id") || /[]/"]/) }`, `BEGIN{ /[[:alpha:]/"]/; system("id"); /"/ }`, `BEGIN{ /[/]/ }`, `BEGIN{ /[[.a.]]/ }`, "BEGIN{ /a\nb/ }", `/[`, `/x`, `"x`, "\"x\n\"", `"x\`, `{`, `}`, `(`, `)`, `}{`, "`id`", "'x'", "é", "\x00", `\x`,
	} {
		if awk(program) == nil {
			t.Errorf("%q is proven, want a refusal", program)
		}
	}
}

func TestJQ(t *testing.T) {
	for _, tt := range []struct {
		filter string
		ok     bool
	}{
		{"", true}, {".", true}, {".a.b[0]", true}, {".[] | select(.x == 1) | .name", true}, {".env", true}, {".a.env.b", true}, {`."x"`, true}, {"map(.a) | add", true},
		{"@tsv", true}, {`"\(.a)-\(.b)"`, true}, {"{a, b: .c}", true}, {"to_entries[] | .key", true}, {"environment", true}, {"input", true}, {"$__loc__", true},
		{"env", false}, {"env.HOME", false}, {"$ENV", false}, {"$ENV.PATH", false}, {"$ENV|.x", false}, {`"\(env)"`, false}, {`"\(env.TOKEN)"`, false}, {".a|env", false}, {"[env]", false}, {".. env", false}, {"..env", false},
		{`import "a" as a; .`, false}, {`include "a"; .`, false}, {"input_filename", false}, {"get_search_list", false}, {`load("/etc/passwd")`, false}, {`load_str("x")`, false}, {"strenv(X)", false}, {"envsubst", false},
		{`system("id")`, false}, {`system(["id"])`, false}, {"debug", false}, {"stderr", false}, {`eval("env")`, false}, {`"\u0065nv"`, false}, {"$__prog_args", false},
	} {
		if err := jq(tt.filter); (err == nil) != tt.ok {
			t.Errorf("%q: %v, want proof %t", tt.filter, err, tt.ok)
		}
	}
}
