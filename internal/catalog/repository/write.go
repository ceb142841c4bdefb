package repository

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/yaml"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
)

// Marshal writes the index as a repository file.
func (x *Index) Marshal() ([]byte, error) {
	x.sort()
	// A name such as 2024 or true is quoted, so that it stays text.
	name, err := yaml.Marshal(x.Name)
	if err != nil {
		return nil, fmt.Errorf("write the name of the repository: %w", err)
	}

	var out bytes.Buffer
	fmt.Fprintf(&out, "apiVersion: %s\nkind: %s\nmetadata:\n  name: %s", manifestsv1alpha1.GroupVersion, manifestsv1alpha1.KindRepository, name)
	for i := range x.Entries {
		data, err := yaml.Marshal(x.Entries[i].document())
		if err != nil {
			return nil, fmt.Errorf("write the entry %s: %w", x.Entries[i].name(), err)
		}
		out.WriteString("---\n")
		out.Write(data)
	}

	return out.Bytes(), nil
}
