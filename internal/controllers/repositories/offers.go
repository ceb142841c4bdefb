package repositories

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// offersAnnotation has, by repository, the digests of its versions in a part, on objects in the
// caches alone.
const offersAnnotation = "lockstep.run/digests-of-offers"

// offersDigest identifies a set of versions of packages, independent of order and parts: the
// exclusive or of the digests of all versions. A duplicate version changes it.
type offersDigest [16]byte

// add adds a version of a package, whose schema is canonical.
func (d *offersDigest) add(packageName string, v corev1alpha1.AvailableVersion) {
	v.Repository = ""
	encoded, _ := json.Marshal(v) // cannot fail: all of it is data, and schemas are valid JSON
	sum := sha256.Sum256(append([]byte(packageName+"\x00"), encoded...))
	d.addDigest(sum[:len(d)])
}

// addDigest combines digests by XOR, so that their order does not matter, and adding one twice
// removes it.
func (d *offersDigest) addDigest(other []byte) {
	for i := range min(len(d), len(other)) {
		d[i] ^= other[i]
	}
}

// addPart adds the versions of a repository in a part that is published.
func (d *offersDigest) addPart(p part, repository string) {
	var digests map[string]string
	if json.Unmarshal([]byte(p.object.GetAnnotations()[offersAnnotation]), &digests) != nil {
		return
	}
	if other, err := hex.DecodeString(digests[repository]); err == nil {
		d.addDigest(other)
	}
}

// String is the digest in hex.
func (d *offersDigest) String() string { return hex.EncodeToString(d[:]) }

// offersOf returns the value of offersAnnotation for a spec whose schemas are canonical.
func offersOf(spec *corev1alpha1.AvailablePackageSpec) string {
	sums := map[string]*offersDigest{}
	for _, v := range spec.Versions {
		sum := sums[v.Repository]
		if sum == nil {
			sum = &offersDigest{}
			sums[v.Repository] = sum
		}
		sum.add(spec.PackageName, v)
	}

	digests := map[string]string{}
	for repository, sum := range sums {
		digests[repository] = sum.String()
	}

	encoded, _ := json.Marshal(digests) // cannot fail: all of it is text
	return string(encoded)
}
