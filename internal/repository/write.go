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
	var out bytes.Buffer
	fmt.Fprintf(&out, "apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n", manifestsv1alpha1.GroupVersion, manifestsv1alpha1.KindRepository, x.Name)
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
