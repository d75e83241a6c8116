package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

type dict = map[string]any

// bill is the bill of materials, in the form of SPDX 2.3: the release, the files of it,
// Go, and every module that is linked into a program.
func bill(r release, b built, files []artefact) dict {
	own := spdxPackage("SPDXRef-bawn", "bawn", r.version, "pkg:golang/github.com/bawn-dev/bawn@v"+r.version)
	own["licenseDeclared"], own["downloadLocation"] = "Apache-2.0", r.sourceURI()
	packages := []dict{own}
	related := []dict{{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-bawn"}}
	relate := func(from, how, to string) {
		related = append(related, dict{"spdxElementId": from, "relationshipType": how, "relatedSpdxElement": to})
	}
	goVersion := strings.TrimPrefix(b.goVersion, "go")
	packages = append(packages, spdxPackage("SPDXRef-go", "stdlib", goVersion, "pkg:golang/stdlib@"+goVersion))
	relate("SPDXRef-bawn", "DEPENDS_ON", "SPDXRef-go")
	for i, m := range b.modules {
		id := fmt.Sprintf("SPDXRef-module-%d", i+1)
		packages = append(packages, spdxPackage(id, m.Path, m.Version, modulePURL(m)))
		relate("SPDXRef-bawn", "DEPENDS_ON", id)
	}
	list, sums := []dict{}, sha256.New()
	for i, f := range files {
		id := fmt.Sprintf("SPDXRef-file-%d", i+1)
		fmt.Fprintln(sums, f.sha256, f.name)
		list = append(list, dict{"SPDXID": id, "fileName": "./" + f.name, "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION",
			"checksums": []dict{{"algorithm": "SHA256", "checksumValue": f.sha256}}})
		relate("SPDXRef-bawn", "GENERATES", id)
	}
	return dict{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "bawn-" + r.version,
		"documentNamespace": home + "/spdx/bawn-" + r.version + "-" + hex.EncodeToString(sums.Sum(nil)),
		"creationInfo":      dict{"created": r.date.Format(time.RFC3339), "creators": []string{"Tool: bawn-dist-" + r.version}},
		"packages":          packages, "files": list, "relationships": related,
	}
}

func spdxPackage(id, name, version, purl string) dict {
	return dict{
		"SPDXID": id, "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
		"licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
		"externalRefs": []dict{{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}},
	}
}

// provenance is a statement of how the files were made: in-toto's statement with SLSA's
// predicate, both of version 1. The signer of the checksums claims it; nothing proves it.
func provenance(r release, b built, files []artefact) dict {
	var subjects []dict
	for _, f := range files {
		subjects = append(subjects, dict{"name": f.name, "digest": dict{"sha256": f.sha256}})
	}
	source := dict{"uri": r.sourceURI()}
	if r.commit != "none" {
		source["digest"] = dict{"gitCommit": r.commit}
	}
	inputs := []dict{source}
	for _, m := range b.modules {
		inputs = append(inputs, dict{"uri": modulePURL(m), "digest": dict{"dirHash1": hexHash(m.Sum)}})
	}
	return dict{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": dict{
			"buildDefinition": dict{
				"buildType":            home + "/blob/main/docs/dev/release.md",
				"externalParameters":   dict{"version": r.version, "source": r.sourceURI()},
				"internalParameters":   dict{"go": b.goVersion, "sourceDateEpoch": r.date.Unix(), "command": "scripts/dist"},
				"resolvedDependencies": inputs,
			},
			"runDetails": dict{"builder": dict{"id": home + "/blob/main/docs/dev/release.md#who-builds"}},
		},
	}
}

// hexHash writes a hash of go.sum ("h1:BASE64") as hexadecimal digits.
func hexHash(sum string) string {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:"))
	if err != nil {
		return ""
	}
	return hex.EncodeToString(raw)
}
