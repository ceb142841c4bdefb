package content

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/util/validation"
)

// BareName reports whether an argument can name a package as well as a folder.
func BareName(arg string) bool { return len(validation.IsDNS1123Label(arg)) == 0 }

// HasManifest reports whether a folder holds a package.
func HasManifest(folder string) bool {
	for _, file := range []string{"manifest.yaml", "manifest.yml"} {
		if _, err := os.Stat(filepath.Join(folder, file)); err == nil {
			return true
		}
	}
	return false
}

// BaseName returns the last part of an image's path as a Kubernetes name.
func BaseName(ref name.Reference) string {
	path := ref.Context().RepositoryStr()
	return strings.ReplaceAll(path[strings.LastIndex(path, "/")+1:], "_", "-")
}

// ImageReference parses the reference of an image. Errors call it noun.
func ImageReference(noun, text string) (name.Reference, error) {
	ref, err := name.ParseReference(text)
	if err != nil {
		return nil, fmt.Errorf("%s %q is not a valid image reference: write it as host/path:tag or host/path@sha256:…", noun, text)
	}
	return ref, nil
}

// IsPath reports whether an argument is a folder: it exists, or is written as only paths are.
func IsPath(arg string) bool {
	if strings.HasPrefix(arg, ".") || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, "~") || strings.HasSuffix(arg, "/") {
		return true
	}
	_, err := os.Stat(arg)
	return err == nil
}
