package loader

import (
	"bytes"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// lockedImages are the images of a lock by the references that templates see.
type lockedImages map[string]corev1alpha1.PackageImage

// repositoryOf strips tag and digest from a reference.
func repositoryOf(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	if colon := strings.LastIndexByte(ref, ':'); colon > strings.LastIndexByte(ref, '/') {
		ref = ref[:colon]
	}
	return ref
}

// digestMark starts the digest in each reference of a lock.
const digestMark = "@sha256:"

// in returns the references of the lock that occur in an object as JSON.
func (l lockedImages) in(raw []byte) []string {
	var found []string
	for at := 0; len(l) > 0; {
		// Searching for digests finds references in any field, such as arguments and environment
		// variables, in one pass over the object.
		i := bytes.Index(raw[at:], []byte(digestMark))
		end := at + i + len(digestMark) + 64
		if i < 0 || end > len(raw) {
			break
		}
		ref := string(raw[referenceStart(raw[:at+i]):end])
		if _, ok := l[ref]; ok && !slices.Contains(found, ref) {
			found = append(found, ref)
		}
		at += i + len(digestMark)
	}

	return found
}

// referenceStart returns where the repository at the end of raw starts: after an escape and a
// scheme.
func referenceStart(raw []byte) int {
	start := len(raw)
	for start > 0 && len(raw)-start < limits.ReferenceBytes && isOfReference(raw[start-1]) {
		start--
	}
	text := bytes.TrimRight(raw[:start], `\`)
	if escaped := (start-len(text))%2 == 1; escaped && start < len(raw) {
		start = min(start+map[bool]int{true: len("u0000"), false: 1}[raw[start] == 'u'], len(raw))
	}
	if i := bytes.LastIndex(raw[start:], []byte("://")); i >= 0 {
		start += i + len("://")
	}
	return start
}

// isOfReference reports whether a byte can be part of a repository in a reference.
func isOfReference(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("._-/:", b) >= 0
}
