package secrets

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sigv4"
)

const (
	keyID, keySecret, keyToken = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "IQoJb3JpZ2luX2VjEJr//////////wEaCXVzLWVhc3QtMSJ=="                                //nolint:gosec // AWS's own examples
	placeholderKey             = "AKIASTANDSTAND234567:STANDSTAND/STANDSTAND+STANDSTANDSTAND123"                                                                                        //nolint:gosec // nobody's
	placeholderLines           = "aws_access_key_id = AKIASTANDSTAND234567\naws_secret_access_key = STANDSTAND/STANDSTAND+STANDSTANDSTAND123\n"                                         //nolint:gosec // nobody's
	realLines                  = "aws_access_key_id = AKIALEAKLEAKLEAKLEAK\naws_secret_access_key = LEAKLEAKLEAKLEAKLEAKLEAKLEAKLEAKLEAKLEAK\naws_session_token=LEAKLEAKLEAKLEAKLEAK\n" //nolint:gosec // nobody's
)

func boundKey(format string) bawn.Binding {
	b := bound(AWSHost, bawn.Signed, "", AWSFile, format)
	b.Placeholder = placeholderKey
	return b
}

// TestMaskOfAWS: of real files with keys ("LEAK" is in each) one profile is bound.
func TestMaskOfAWS(t *testing.T) {
	withToken := boundKey("aws")
	withToken.Placeholder += ":STANDTOKENSTANDTOKEN=="
	for _, tt := range []struct {
		name, real string
		b          bawn.Binding
		want       string
	}{
		{"fresh", "", boundKey("aws"), "[default]\n" + placeholderLines},
		{"fresh, another profile", "", boundKey("aws:work"), "[work]\n" + placeholderLines},
		{"settings", "# LEAK\n[default]\n" + realLines + "region = eu-central-1\noutput=json\n", boundKey("aws"), "[default]\n" + placeholderLines + "region = eu-central-1\noutput = json\n"},
		{"another profile", "[default]\n" + realLines + "region=x\n[work]\n" + realLines + "region=y\n", boundKey("aws:work"), "[work]\n" + placeholderLines + "region = y\n"},
		{"token", "[default]\n" + realLines, withToken, "[default]\n" + placeholderLines + "aws_session_token = STANDTOKENSTANDTOKEN==\n"},
		{"names that are none", "[default]\n[a b]\nrole_arn = arn:x\nsource_profile = default\n[]\n" + realLines, boundKey("aws"), "[default]\n" + placeholderLines},
		{"a role for it", "[default]\n" + realLines + "[admin]\nrole_arn = arn:aws:iam::123456789012:role/x\nsource_profile = default\nexternal_id = LEAK\nregion = z\n", boundKey("aws"),
			"[default]\n" + placeholderLines + "[admin]\nrole_arn = arn:aws:iam::123456789012:role/x\nsource_profile = default\nregion = z\n"},
		{"a role for another", "[default]\n[admin]\nrole_arn = arn:aws:iam::123456789012:role/LEAK\nsource_profile = other\n", boundKey("aws"), "[default]\n" + placeholderLines},
		{"keys beside a role", "[default]\n[admin]\nrole_arn = arn:x\nsource_profile = default\n" + realLines, boundKey("aws"), "[default]\n" + placeholderLines + "[admin]\nrole_arn = arn:x\nsource_profile = default\n"},
		{"what leads to a key", "[default]\ncredential_process = /bin/LEAK\nsso_start_url=LEAK\nweb_identity_token_file=LEAK\nAWS_SECURITY_TOKEN = LEAK\nmotto = LEAK\nendpoint_url = https://u:LEAK@h.example.com\ns3 =\n  LEAK = 1\n", boundKey("aws"), "[default]\n" + placeholderLines},
		{"twice", "[default]\nregion=x\n[default]\n" + realLines, boundKey("aws"), "[default]\n" + placeholderLines},
		{"a colon", "[default]\nregion: x\naws_secret_access_key: LEAK\n", boundKey("aws"), "[default]\n" + placeholderLines},
		{"no profile", realLines, boundKey("aws"), "[default]\n" + placeholderLines},
		{"a key as a setting", "[default]\noutput = ghp_16C7e42F292c6912E7710c838347Ae178B4aLEAK\n", boundKey("aws"), "[default]\n" + placeholderLines},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, notes := mask(t, tt.real, tt.b)
			if diff := cmp.Diff(tt.want, got); diff != "" || strings.Contains(got, "LEAK") {
				t.Errorf("%s\n%q", diff, notes)
			}
			if strings.Contains(tt.real, "other") && len(notes) == 0 {
				t.Error("no note says that something was left out")
			}
		})
	}
}

func TestTwoKeysInOneFile(t *testing.T) {
	other := boundKey("aws:other")
	other.Secret, other.Placeholder = "second", strings.ReplaceAll(placeholderKey, "STAND", "OTHER")
	got, _ := mask(t, "", boundKey("aws"), other)
	if want := "[default]\n" + placeholderLines + "[other]\n" + strings.ReplaceAll(placeholderLines, "STAND", "OTHER"); got != want {
		t.Errorf("%s", cmp.Diff(want, got))
	}
	other.Format = "aws"
	if masks, _, _, err := Masks([]bawn.Binding{boundKey("aws"), other}, t.TempDir()); err == nil {
		t.Errorf("one profile, two keys: %v", masks)
	}
}

func TestKeyInVariables(t *testing.T) {
	b := boundKey("")
	b.File, b.Env = "", "AWS_ACCESS_KEY_ID"
	_, env, notes, err := Masks([]bawn.Binding{b}, t.TempDir())
	id, secret, _ := strings.Cut(placeholderKey, ":")
	if want := []string{"AWS_ACCESS_KEY_ID=" + id, "AWS_SECRET_ACCESS_KEY=" + secret}; err != nil || !slices.Equal(env, want) || len(notes) != 2 {
		t.Errorf("%q %q %v", env, notes, err)
	}
}

func TestPlaceholderOfKey(t *testing.T) {
	shape := regexp.MustCompile(`^AKIA[A-Z2-7]{16}:[A-Za-z0-9/]{40}:[A-Za-z0-9]{` + strconv.Itoa(len(keyToken)) + `}$`)
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Za-z0-9/+]{40}`).Draw(t, "secret")
		got, err := Placeholder([]byte("ASIA" + keyID[4:] + ":" + secret))
		c, parseErr := sigv4.ParseCredential([]byte(got))
		if err != nil || parseErr != nil || len(c.ID) != 20 || string(c.ID[:4]) != "ASIA" || len(c.Secret) != 40 || sharesPiece(got, []byte(secret), nil) {
			t.Errorf("%q for %q: %v", got, secret, err)
		}
	})
	got, err := Placeholder([]byte(keyID + ":" + keySecret + ":" + keyToken))
	if err != nil || !shape.MatchString(got) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := Placeholder([]byte(keyID + ":" + strings.Repeat("+/", 20))); err != nil || strings.Contains(got, "+/+/+/") {
		t.Errorf("%q has a piece of a secret of punctuation, %v", got, err)
	}
	for i := 4; i+6 <= len(keyID); i++ {
		if strings.Contains(got, keyID[i:i+6]) {
			t.Errorf("%q has a piece of the id", got)
		}
	}
}

func TestReadKey(t *testing.T) {
	lasting, session := keyID+":"+keySecret, keyID+":"+keySecret+":"+keyToken
	for text, want := range map[string]string{
		lasting: lasting, session: session, lasting + "\n": lasting,
		"[default]\naws_access_key_id = " + keyID + "\naws_secret_access_key=" + keySecret + "\nregion = x\n":                                              lasting,
		"export AWS_ACCESS_KEY_ID=" + keyID + "\nexport AWS_SECRET_ACCESS_KEY='" + keySecret + "'\nexport AWS_SESSION_TOKEN=\"" + keyToken + "\"\n":        session,
		`{"Version": 1, "AccessKeyId": "` + keyID + `", "SecretAccessKey": "` + strings.ReplaceAll(keySecret, "/", `\/`) + `", "SessionToken": null}`:      lasting,
		`{"Credentials": {"AccessKeyId": "` + keyID + `", "SecretAccessKey": "` + keySecret + `", "SessionToken": "` + keyToken + `", "Expiration": "x"}}`: session,
		"": "", keyID: "", "{}": "", "{": "", `{"AccessKeyId": 1}`: "", `{"Credentials": 1}`: "", "[default]\nregion=x\n": "",
		"[a]\naws_access_key_id = " + keyID + "\naws_secret_access_key=" + keySecret + "\n[b]\naws_access_key_id = " + keyID + "\naws_secret_access_key=" + keySecret + "\n": "",
		`{"AccessKeyId": "` + keyID + `", "SecretAccessKey": "` + keySecret + `\u0041"}`:                                                                                     "",
	} {
		got, err := ReadKey([]byte(text))
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), keySecret) {
			t.Errorf("the error has the value: %v", err)
		}
	}
}

// TestSignedNeedsAKey: what is no access key is not bound to signatures for long.
func TestSignedNeedsAKey(t *testing.T) {
	v := open(t, options(t))
	set := func(name, value string) error { return v.Set(t.Context(), name, bawn.NewSecret([]byte(value))) }
	b := bawn.Binding{Secret: "aws", Host: AWSHost, Place: bawn.Signed, File: AWSFile, Format: AWSFormat}
	for _, err := range []error{set("aws", "no-key-at-all"), v.Bind(t.Context(), b)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := v.Bindings(t.Context(), []string{"aws"})
	wantError(t, err, "no access key")
	wantError(t, set("aws", "another-value"), "no access key")
	if err := set("aws", keyID+":"+keySecret); err != nil {
		t.Fatal(err)
	}
	bs, err := v.Bindings(t.Context(), []string{"aws"})
	if err != nil || strings.Contains(bs[0].Placeholder, keySecret) || len(parts(bs[0])) != 2 {
		t.Errorf("%v, %v", bs, err)
	}
	if err := set("other", keyID+":"+keySecret); err != nil {
		t.Fatal(err)
	}
	b.Secret, b.Name = "other", "*/s3"
	wantError(t, v.Bind(t.Context(), b), "belongs to")
	b.Format = "aws:other"
	if err := v.Bind(t.Context(), b); err != nil {
		t.Error(err)
	}
}

// FuzzAWSCredentials: whatever the file is, no key of it is in the mask, and
// the mask has the placeholder where a client finds it.
func FuzzAWSCredentials(f *testing.F) {
	f.Add([]byte("[default]\n" + realLines + "region = x\n[admin]\nrole_arn=a\nsource_profile = default\n"))
	f.Add([]byte("[a]\naws_access_key_id=AKIAIOSFODNN7EXAMPLE\r\naws_secret_access_key = 0123456789012345678901234567890123456789\n"))
	f.Add([]byte("[ default ]\ns3 =\n  x = y\n"))
	f.Fuzz(func(t *testing.T, real []byte) {
		found, readErr := awsLogins(real)
		content, _, err := maskAWS(real, []bawn.Binding{boundKey("aws")})
		if err != nil || readErr != nil {
			return
		}
		for _, l := range found {
			_, secret, _ := strings.Cut(l.value, ":")
			if strings.Contains(string(content), secret) && strings.Count(string(real), secret) == 1 && !strings.Contains(placeholderKey, secret) {
				t.Fatalf("%q is in the mask\n%s", secret, content)
			}
		}
		masked, err := awsLogins(content)
		if err != nil || len(masked) != 1 || masked[0].value != placeholderKey || masked[0].user != "default" {
			t.Fatalf("%v, %v\n%s", masked, err, content)
		}
	})
}

// FuzzReadKey: what is read is a key, and the same when it is read again.
func FuzzReadKey(f *testing.F) {
	f.Add([]byte(keyID + ":" + keySecret))
	f.Add([]byte("[default]\n" + realLines))
	f.Add([]byte(`{"Credentials": {"AccessKeyId": "` + keyID + `", "SecretAccessKey": "` + keySecret + `"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		key, err := ReadKey(text)
		if err != nil {
			return
		}
		again, err := ReadKey(key)
		if err != nil || string(again) != string(key) || !singleLine(key) {
			t.Fatalf("%q is read as %q, then as %q: %v", text, key, again, err)
		}
	})
}
