package fetch

import (
	"fmt"
	"maps"
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// inline collects the files of the source itself, and of the Secrets and ConfigMaps that it names.
func inline(s Source, known string) (*Result, error) {
	c := collection{files: map[string][]byte{}, fromSecrets: map[string]bool{}}
	spec := s.Spec.Inline
	for _, p := range slices.Sorted(maps.Keys(spec.Files)) {
		if err := c.add(p, []byte(spec.Files[p]), "inline.files"); err != nil {
			return nil, err
		}
	}

	for i, from := range spec.FilesFrom {
		if err := c.addFrom(s, from, fmt.Sprintf("inline.filesFrom[%d]", i)); err != nil {
			return nil, err
		}
	}

	// A digest of content from Secrets would let a reader of the status test guesses of their
	// values.
	if len(c.fromSecrets) > 0 {
		return &Result{Files: c.files, FromSecrets: c.fromSecrets}, nil
	}

	digest := digestOf(c.files)
	if digest == known {
		return &Result{NotModified: true}, nil
	}

	return &Result{Files: c.files, Revision: digest, Validator: digest}, nil
}

// collection has the files read so far.
type collection struct {
	files map[string][]byte
	// fromSecrets are the paths of files that come from Secrets.
	fromSecrets map[string]bool
	bytes       int
}

// addFrom adds the keys of a Secret or ConfigMap as files.
func (c *collection) addFrom(s Source, from corev1alpha1.RepositoryFilesSource, field string) error {
	data := map[string][]byte{}
	switch {
	case from.SecretRef != nil:
		secret, ok := s.Secrets[from.SecretRef.Name]
		if !ok {
			return missing("Secret", from.SecretRef.Name, field)
		}
		data = secret
	case from.ConfigMapRef != nil:
		configMap, ok := s.ConfigMaps[from.ConfigMapRef.Name]
		if !ok {
			return missing("ConfigMap", from.ConfigMapRef.Name, field)
		}
		for key, text := range configMap {
			data[key] = []byte(text)
		}
	}

	for _, key := range slices.Sorted(maps.Keys(data)) {
		if !isContent(key) {
			continue
		}
		if err := c.add(key, data[key], field); err != nil {
			return err
		}
		if from.SecretRef != nil {
			c.fromSecrets[key] = true
		}
	}

	return nil
}

// missing is the error of a reference to an object that does not exist.
func missing(kind, name, field string) *Error {
	return permanent("Create it in the namespace of the repository, for a ClusterPackageRepository in the manager's.", "%s: there is no %s %q", field, kind, name)
}

// add adds one file with a path that a user wrote.
func (c *collection) add(p string, data []byte, field string) error {
	if problem := pathProblem(p); problem != "" {
		return permanent("Name the file by a path such as packages/shop.yaml.", "%s: the path %.200q %s", field, p, problem)
	}
	if _, twice := c.files[p]; twice {
		return permanent("Rename one of them.", "%s: the file %q is listed twice", field, p)
	}
	if c.bytes += len(data); c.bytes > limits.RepositoryBytes {
		return permanent("Split the repository.", "%s: the files have more than %d bytes", field, limits.RepositoryBytes)
	}
	if len(c.files) >= limits.RepositoryFiles {
		return permanent("Split the repository.", "%s: there are more than %d files", field, limits.RepositoryFiles)
	}

	c.files[p] = data
	return nil
}
