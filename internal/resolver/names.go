package resolver

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Child returns the instance that is installed for a dependency. Its name has no dot, because
// packages name Services after themselves.
func Child(dependent Instance, dependency string) Instance {
	return Instance{dependent.Namespace, shortened(dependent.Name + "-" + dependency)}
}

// IsChild reports by name whether an instance of a package was installed for a dependency.
func IsChild(dependent Instance, dependency, of string, i Instance) bool {
	return i == Child(dependent, dependency) || i == Child(dependent, dependency+hashed(of))
}

// shortened returns a name of at most 63 bytes, so that it is valid as the value or name of a
// label. A hash replaces the end of a longer name.
func shortened(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}

	suffix := hashed(name)
	return strings.TrimRight(name[:validation.LabelValueMaxLength-len(suffix)], "-.") + suffix
}

// LabelOf returns the last part of the label that marks a package in namespace with its dependent.
func LabelOf(dependent Instance, namespace string) string {
	if dependent.Namespace == namespace {
		return shortened(dependent.Name)
	}

	suffix := hashed(dependent.Namespace)
	if len(dependent.Name)+len(suffix) > validation.LabelValueMaxLength {
		suffix = hashed(dependent.Namespace + "/" + dependent.Name)
	}
	return shortened(strings.TrimRight(dependent.Name[:min(len(dependent.Name), validation.LabelValueMaxLength-len(suffix))], "-.") + suffix)
}

// hashed returns a short hash of a text as the end of a name.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "-" + hex.EncodeToString(sum[:5])
}
