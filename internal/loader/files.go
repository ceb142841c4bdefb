package loader

import (
	"context"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"lockstep.run/lockstep/internal/loader/archive"
)

// Files are the files of a package: content by path below /package.
type Files = archive.Files

// ReadFolder reads a package out of a folder.
func ReadFolder(dir string) (Files, error) { return archive.ReadFolder(dir) }

// ReadImage reads a package out of an image.
func ReadImage(ctx context.Context, img v1.Image) (Files, error) { return archive.ReadImage(ctx, img) }
