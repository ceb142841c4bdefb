package repository

import (
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"lockstep.run/lockstep/internal/loader"
)

// Folder is the folder of a repository in an image.
const Folder = "repository"

// file is the only file of the folder.
const file = "repository.yaml"

// Image returns the repository as an image. Equal content has an equal digest.
func (x *Index) Image() (v1.Image, error) {
	data, err := x.Marshal()
	if err != nil {
		return nil, err
	}
	return loader.BuildFolder(Folder, loader.Files{file: data}, loader.BuildOptions{})
}

// FromImage reads a repository from the files in an image's [Folder]. ref names the image in
// messages.
func FromImage(ref string, files loader.Files) (*Index, error) {
	data, ok := files[file]
	if !ok {
		return nil, fmt.Errorf("the image %s holds no repository: there is no /%s/%s in it", ref, Folder, file)
	}
	x, err := Parse(Folder+"/"+file, data)
	if err != nil {
		return nil, fmt.Errorf("the repository in the image %s cannot be used: %w", ref, err)
	}
	return x, nil
}
