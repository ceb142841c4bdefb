package repositories

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
)

const memoryPerVersion = 200 // bytes of a published version, in addition to twice its JSON

// packed is the content of a repository by package, compressed. It keeps all of it, including
// versions that others offer in its place.
type packed struct {
	packages map[string]packedPackage
	versions int
	problems []string
	// offers is the digest of all versions.
	offers offersDigest
	// bytes is its memory, including its part of the caches once it is published.
	bytes int64
}

// packedPackage is the offer of a package, compressed. Catalogues are read seldom and can have many
// MiB.
type packedPackage struct {
	digest [sha256.Size]byte
	data   []byte
	// size is the number of bytes of the unpacked data.
	size int64
}

// pack compresses a content package by package.
func pack(content *repository.Content) (*packed, error) {
	p := &packed{packages: make(map[string]packedPackage, len(content.Packages)), problems: content.Problems}
	w, err := flate.NewWriter(io.Discard, flate.BestSpeed)
	if err != nil {
		return nil, err
	}

	for _, pkg := range content.Packages {
		pkg.Versions = canonical(pkg.Versions)
		encoded, err := json.Marshal(pkg)
		if err != nil {
			return nil, fmt.Errorf("encode package %s: %w", pkg.Name, err)
		}
		var data bytes.Buffer
		w.Reset(&data)
		if _, err = w.Write(encoded); err == nil {
			err = w.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("compress package %s: %w", pkg.Name, err)
		}
		p.packages[pkg.Name] = packedPackage{digest: sha256.Sum256(encoded), data: bytes.Clone(data.Bytes()), size: int64(len(encoded))}
		p.versions += len(pkg.Versions)
		p.bytes += int64(data.Len())
		for i := range pkg.Versions {
			p.offers.add(pkg.Name, pkg.Versions[i])
			p.bytes += cachedBytes(pkg.Versions[i])
		}
	}

	return p, nil
}

// cachedBytes is about how much memory a published version takes in the caches, which have no texts
// and schemas.
func cachedBytes(v corev1alpha1.AvailableVersion) int64 {
	v.ConfigSchema, v.Release = nil, nil
	encoded, _ := json.Marshal(v) // cannot fail: all of it is data
	return memoryPerVersion + 2*int64(len(encoded))
}

// unpack returns a package; nil if the repository does not offer it.
func (p *packed) unpack(name string) (*repository.Package, error) {
	found, ok := p.packages[name]
	if !ok {
		return nil, nil
	}
	r := flate.NewReader(bytes.NewReader(found.data))
	defer r.Close()
	pkg := &repository.Package{}
	if err := json.NewDecoder(r).Decode(pkg); err != nil {
		return nil, fmt.Errorf("decompress package %s: %w", name, err)
	}
	return pkg, nil
}

// changed returns the names of packages that differ between two contents.
func changed(before, after *packed) []string {
	var names []string
	for name, pkg := range after.packages {
		if last, ok := before.packages[name]; !ok || last.digest != pkg.digest {
			names = append(names, name)
		}
	}
	for name := range before.packages {
		if _, ok := after.packages[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}
