package loader

import (
	"strings"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// readme is the file that stands in for a missing description.
const readme = "README.md"

// About returns what a catalogue shows of a package beside the texts of its
// manifest: the long description in Markdown, which is the package's README.md
// where the manifest has none, and the icon, nil where there is none. Files are
// those that the manifest lies among. The texts are not trusted: whoever prints
// them has to make them harmless.
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
