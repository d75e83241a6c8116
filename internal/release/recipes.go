package main

import (
	"fmt"
	"strings"
)

// sumOf returns the checksum of an archive, or zeros where the release lacks it, which
// no download has.
func sumOf(files []artefact, name string) string {
	for _, f := range files {
		if f.name == name {
			return f.sha256
		}
	}
	return strings.Repeat("0", 64)
}

// archive names the archive of a target, such as "linux-amd64".
func (r release) archive(target string) string {
	return fmt.Sprintf("bawn-%s-%s.tar.gz", r.version, target)
}

func (r release) address(target string) string {
	return fmt.Sprintf("%s/releases/download/v%s/%s", home, r.version, r.archive(target))
}

// homebrew is the formula for Homebrew, on macOS and Linux.
func homebrew(r release, files []artefact) string {
	one := func(target, indent string) string {
		return fmt.Sprintf("%surl %q\n%ssha256 %q\n", indent, r.address(target), indent, sumOf(files, r.archive(target)))
	}
	return fmt.Sprintf(`class Bawn < Formula
  desc "Run AI coding agents as guests on your machine"
  homepage %q
  version %q
  license "Apache-2.0"

  on_macos do
    depends_on arch: :arm64
%s  end

  on_linux do
    on_arm do
%s    end
    on_intel do
%s    end
  end

  def install
    libexec.install Dir["libexec/bawn/*"]
    bin.install_symlink libexec/"bawn"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/bawn"
    zsh_completion.install "share/zsh/site-functions/_bawn"
    fish_completion.install "share/fish/vendor_completions.d/bawn.fish"
    doc.install Dir["share/doc/bawn/*"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/bawn version")
  end
end
`, home, r.version, one("darwin-arm64", "    "), one("linux-arm64", "      "), one("linux-amd64", "      "))
}

// nixExpression is a package for Nix: callPackage ./bawn.nix { }.
func nixExpression(r release, files []artefact) string {
	one := func(system, target string) string {
		return fmt.Sprintf("    %s = fetchurl {\n      url = %q;\n      sha256 = %q;\n    };\n", system, r.address(target), sumOf(files, r.archive(target)))
	}
	return fmt.Sprintf(`{ lib, stdenvNoCC, fetchurl }:

stdenvNoCC.mkDerivation {
  pname = "bawn";
  version = %q;

  src = {
%s%s%s  }.${stdenvNoCC.hostPlatform.system} or (throw "bawn: no build for ${stdenvNoCC.hostPlatform.system}");

  dontConfigure = true;
  dontBuild = true;
  # The programs are static: there is nothing to patch or strip.
  dontFixup = true;

  installPhase = ''
    mkdir -p "$out"
    cp -r bin libexec share "$out"
  '';

  meta = {
    description = "Run AI coding agents as guests on your machine";
    homepage = %q;
    license = lib.licenses.asl20;
    mainProgram = "bawn";
    platforms = [ "x86_64-linux" "aarch64-linux" "aarch64-darwin" ];
    sourceProvenance = [ lib.sourceTypes.binaryNativeCode ];
  };
}
`, r.version, one("x86_64-linux", "linux-amd64"), one("aarch64-linux", "linux-arm64"), one("aarch64-darwin", "darwin-arm64"), home)
}
