package loader

import (
	"strings"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// readme is the file that stands in for a missing description.
const readme = "README.md"

// About returns the long description, by default README.md, and the icon, nil for none. The
// texts are not trusted.
func About(files Files, m *manifestsv1alpha1.PackageManifest) (description string, icon []byte) {
	if d := m.Spec.Display; d != nil {
		description = d.LongDescription
		if data := files[d.Icon]; len(data) <= limits.IconBytes {
			icon = data
		}
	}
	if description == "" {
		text := files[readme]
		description = strings.ToValidUTF8(string(text[:min(len(text), limits.ProseBytes)]), "")
	}
	return description, icon
}
