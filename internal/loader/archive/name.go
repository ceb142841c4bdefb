package archive

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"lockstep.run/lockstep/internal/limits"
)

// root is the folder of an image that holds a package.
const root = "package"

// place is the place of an entry in an image.
type place struct {
	path string
	// inside is set if the entry is in the folder that is read, or is that folder.
	inside bool
}

// locate cleans the name of an entry. Base systems have odd names outside the folder.
func locate(layer int, name, folder string) (place, error) {
	segments := strings.Split(name, "/")
	clean := segments[:0:0]
	for _, s := range segments {
		switch s {
		case "", ".":
		case "..":
			return place{}, entryError(layer, name, "Build the image without it.", "the path leads out of its folder")
		default:
			clean = append(clean, s)
		}
	}

	p := place{path: strings.Join(clean, "/")}
	p.inside = len(clean) > 0 && clean[0] == folder
	if !p.inside {
		return p, nil
	}

	return p, checkName(layer, name, clean)
}

// checkName refuses paths that some system cannot store, or that mean different files on two
// systems. segments are the parts of name, with the folder first.
func checkName(layer int, name string, segments []string) error {
	const remedy = "Rename it."
	length := len(strings.Join(segments[1:], "/"))
	switch {
	case strings.HasPrefix(name, "/"):
		return entryError(layer, name, "Store paths relative to the root of the image.", "the path is absolute")
	case length > limits.PathBytes:
		return limitError(layer, name, remedy, "the path has %d bytes below /%s; the limit is %d", length, segments[0], limits.PathBytes)
	case len(segments)-1 > limits.PathDepth:
		return limitError(layer, name, "Use fewer folders.", "the path has %d segments; the limit is %d", len(segments)-1, limits.PathDepth)
	case !utf8.ValidString(name):
		return entryError(layer, name, remedy, "the path is not UTF-8")
	case strings.Contains(name, `\`):
		return entryError(layer, name, "Use slashes.", "the path has a backslash")
	}

	for _, s := range segments {
		// A whiteout is not stored, and can name a file of a lower layer.
		if !strings.HasPrefix(s, whiteoutPrefix) && (strings.HasSuffix(s, ".") || strings.HasSuffix(s, " ")) {
			return entryError(layer, name, remedy, "a name in the path ends with a dot or a space, which some systems cut off")
		}
	}

	for _, r := range name {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) {
			return entryError(layer, name, remedy, "the path has the control character %U", r)
		}
	}

	return nil
}

// These are whiteout names of the OCI image layer specification.
const (
	whiteoutPrefix = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
	auFSMetadata   = ".wh..wh."
)

// whiteout returns the path that an entry p hides, or the folder whose content it hides.
func whiteout(layer int, entry, p string) (hidden string, opaque, ok bool, err error) {
	folder, base := path.Split(p)
	folder = strings.TrimSuffix(folder, "/")
	switch {
	case base == opaqueWhiteout:
		return folder, true, true, nil
	case strings.HasPrefix(base, auFSMetadata):
		return "", false, false, nil
	case strings.HasPrefix(base, whiteoutPrefix):
		name := strings.TrimPrefix(base, whiteoutPrefix)
		if name == "" || name == "." || name == ".." {
			return "", false, false, entryError(layer, entry, "Build the image without it.", "the whiteout names nothing")
		}
		return path.Join(folder, name), false, true, nil
	}

	return "", false, false, nil
}

// isDotted reports whether any part of a path starts with a dot.
func isDotted(p string) bool {
	return strings.HasPrefix(p, ".") || strings.Contains(p, "/.")
}
