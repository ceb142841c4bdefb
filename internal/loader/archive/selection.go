package archive

import (
	"cmp"
	"errors"
	"strings"

	"lockstep.run/lockstep/internal/limits"
)

// Selection selects and limits the files to read from an image or an archive. The zero value
// selects a package.
type Selection struct {
	// Folder is a folder at the root; "package" by default, if Keep is nil.
	Folder string
	// Keep, if set, selects files anywhere by their paths from the root. All other entries are
	// skipped.
	Keep func(path string) bool
	// Plain is set for an archive that is not a layer of an image.
	Plain bool
	// Entries, Files and Bytes are limits. 0 means the limit of a package.
	Entries, Files int
	Bytes          int64
	// Room, if set, ends the reading of a package with ErrRoom if its files have more bytes. The
	// caller then reads it again with more room.
	Room int64

	// prefix leads from the root to the files.
	prefix string
}

// ErrRoom means that a package has more bytes than there is room for at the moment.
var ErrRoom = errors.New("the package needs more room")

// setDefaults fills in the limits of a package.
func (s *Selection) setDefaults() {
	if s.Keep == nil {
		s.Folder = cmp.Or(s.Folder, root)
		s.prefix = s.Folder + "/"
	}
	s.Entries = cmp.Or(s.Entries, limits.ArchiveEntries)
	s.Files = cmp.Or(s.Files, limits.PackageFiles)
	s.Bytes = cmp.Or(s.Bytes, limits.PackageBytes)
}

const (
	leaveOut  = "Leave out files that do not belong to it"
	onlyFiles = "Only files and folders are read; replace it by a copy."
)

// locate returns the place of an entry.
func (s *Selection) locate(layer int, name string) (place, error) {
	if s.Keep == nil {
		return locate(layer, name, s.Folder)
	}
	at, err := locate(layer, name, "")
	if err != nil || !s.Keep(at.path) {
		return at, err
	}
	at.inside = true
	return at, checkName(layer, name, append([]string{""}, strings.Split(at.path, "/")...))
}
