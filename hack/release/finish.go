package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/imagepolicy/keyless"
)

// Names of the files that list others.
const (
	provenanceFile = "provenance.json"
	checksumsFile  = "SHA256SUMS"
	signatureFile  = "SHA256SUMS.sig"
	// bundleSuffix is that of signatures as Sigstore bundles.
	bundleSuffix = ".sigstore.json"
)

// finish writes what lists the files, and signs it.
func (r *release) finish(ctx context.Context, by signing) error {
	if err := r.writeKrew(); err != nil {
		return err
	}
	if err := r.writeProvenance(); err != nil {
		return err
	}
	sums, err := r.checksums()
	if err != nil {
		return err
	}
	var list bytes.Buffer
	for _, sum := range sums {
		fmt.Fprintf(&list, "%s  %s\n", sum.digest, sum.name)
	}
	if err := r.write(checksumsFile, list.Bytes()); err != nil {
		return err
	}
	switch {
	case by.key != "":
		return r.signByKey(by.key, list.Bytes())
	case by.token != "":
		return r.signByIdentity(ctx, by, list.Bytes())
	}
	return nil
}

// checksum is that of a file.
type checksum struct{ name, digest string }

// checksums returns those of the files that there are, by name.
func (r *release) checksums() ([]checksum, error) {
	files, err := readFolder(r.folder)
	if err != nil {
		return nil, err
	}
	var sums []checksum
	for _, f := range files {
		digest := sha256.Sum256(f.content)
		sums = append(sums, checksum{f.path, hex.EncodeToString(digest[:])})
	}
	return sums, nil
}

// writeKrew writes the manifests of the plugin: lockstep for the index of krew, which refuses names as general as package, and
// package for an index of our own.
func (r *release) writeKrew() error {
	var platforms []any
	for _, p := range r.platforms {
		content, err := os.ReadFile(filepath.Join(r.folder, r.archive(p)))
		if err != nil {
			return err
		}
		digest := sha256.Sum256(content)
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": p.os, "arch": p.arch}},
			"uri":      r.url + "/" + r.archive(p), "sha256": hex.EncodeToString(digest[:]), "bin": programOf(p),
			"files": []any{map[string]any{"from": programOf(p), "to": "."}, map[string]any{"from": "LICENSE", "to": "."}},
		})
	}
	for _, name := range []string{"lockstep", "package"} {
		content, err := yaml.Marshal(map[string]any{
			"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"version": r.version, "homepage": "https://lockstep.run", "platforms": platforms,
				"shortDescription": "Build, install and watch packages",
				"description":      "Builds packages of Kubernetes objects, plans and installs them with Lockstep,\nwhich rolls them out phase by phase, and says why one is not available.\n",
			},
		})
		if err != nil {
			return err
		}
		if err := r.write("krew-"+name+".yaml", content); err != nil {
			return err
		}
	}
	return nil
}

// writeProvenance writes how the files were built, as an in-toto statement with SLSA's provenance.
func (r *release) writeProvenance() error {
	sums, err := r.checksums()
	if err != nil {
		return err
	}
	subjects := []any{map[string]any{"name": r.image, "digest": map[string]any{"sha256": r.digest[len("sha256:"):]}}}
	for _, sum := range sums {
		subjects = append(subjects, map[string]any{"name": sum.name, "digest": map[string]any{"sha256": sum.digest}})
	}
	statement := map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":          "https://lockstep.run/releases/build/v1",
				"externalParameters": map[string]any{"version": r.version, "image": r.image, "url": r.url},
				"internalParameters": map[string]any{"created": r.created, "uncommittedChanges": r.changed},
				"resolvedDependencies": []any{
					map[string]any{"uri": "git+https://lockstep.run/lockstep", "digest": map[string]any{"gitCommit": r.commit}},
					map[string]any{"uri": "pkg:generic/go@" + runtime.Version()[len("go"):]},
				},
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": "https://lockstep.run/releases/build/v1/hack/release"}},
		},
	}
	content, err := json.MarshalIndent(statement, "", "  ")
	if err != nil {
		return err
	}
	return r.write(provenanceFile, append(content, '\n'))
}

// signing says by what a release is signed; the zero value by nothing.
type signing struct {
	key, token, services string    // names of files
	in                   io.Reader // of which a token named - is read
}

// check refuses what could sign nothing once all is built.
func (s signing) check() error {
	switch {
	case s.key != "" && s.token != "":
		return errors.New("a release is signed by a key or by an identity: leave --key or --identity-token out")
	case s.services != "" && s.token == "":
		return errors.New("--signing-config is for signatures by an identity: add --identity-token FILE")
	case s.key != "":
		_, err := readKey(s.key)
		return err
	case s.token == "":
		return nil
	}
	if s.token != "-" {
		if _, err := os.Stat(s.token); err != nil {
			return errors.New("--identity-token names no file that can be read; it is the name of a file, or - for standard input")
		}
	}
	_, err := keyless.ReadServices(s.services)
	return err
}

// readKey reads the key of --key. The documentation verifies with SHA-256, and signatures by keys of other kinds are of other hashes.
func readKey(key string) (*imagepolicy.Signer, error) {
	pem, err := os.ReadFile(key)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	signer, err := imagepolicy.NewSigner(pem, func() ([]byte, error) { return []byte(os.Getenv("COSIGN_PASSWORD")), nil })
	if err == nil && !signer.IsECDSAP256() {
		err = errors.New("it is no ECDSA key on P-256, as cosign generate-key-pair makes them: docs/releases.md verifies with SHA-256")
	}
	if err != nil {
		return nil, fmt.Errorf("the key %s: %w", key, err)
	}
	return signer, nil
}

// signByKey signs the checksums, as cosign sign-blob does with a bundle and without, and the images.
func (r *release) signByKey(key string, sums []byte) error {
	signer, err := readKey(key)
	if err != nil {
		return err
	}
	bundle, raw, err := signer.SignBlob(sums)
	if err != nil {
		return fmt.Errorf("sign the checksums: %w", err)
	}
	if err := r.write(signatureFile, []byte(base64.StdEncoding.EncodeToString(raw)+"\n")); err != nil {
		return err
	}
	return r.writeBundles(bundle, signer.Sign)
}

// signByIdentity signs these by certificates for the identity of a token, which is read now, as it may be valid for minutes alone.
func (r *release) signByIdentity(ctx context.Context, by signing, sums []byte) error {
	services, err := keyless.ReadServices(by.services)
	if err != nil {
		return err
	}
	token, err := keyless.ReadToken(by.token, by.in)
	if err != nil {
		return err
	}
	signed, err := services.SignBlob(ctx, token, sums)
	if err != nil {
		return fmt.Errorf("sign the checksums: %w", err)
	}
	fmt.Fprintf(os.Stderr, "signed the checksums as %q\n", signed.Identity())
	return r.writeBundles(signed.Bundle, func(digest string) ([]byte, error) {
		signed, err := services.Sign(ctx, token, digest)
		if err != nil {
			return nil, err
		}
		return signed.Bundle, nil
	})
}

// writeBundles writes the signature of the checksums, and signs the image, as cosign sign does. Signatures are files beside the
// image and not in it, so that who builds the release again gets the same image and checksums.
func (r *release) writeBundles(sums []byte, sign func(digest string) ([]byte, error)) error {
	if err := r.write(checksumsFile+bundleSuffix, append(sums, '\n')); err != nil {
		return err
	}
	bundle, err := sign(r.digest)
	if err != nil {
		return fmt.Errorf("sign the image: %w", err)
	}
	return r.write("lockstep-manager-"+r.version+bundleSuffix, append(bundle, '\n'))
}
