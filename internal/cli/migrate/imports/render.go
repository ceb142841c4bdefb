package imports

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/catalog/fetch"
	"lockstep.run/lockstep/internal/cli/author"
	"lockstep.run/lockstep/internal/cli/author/kickstart"
	"lockstep.run/lockstep/internal/cli/carvel"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/registry"
)

// renderFlags have a Package of kapp-controller rendered into a package, by the user's own tools.
type renderFlags struct {
	folder, version, namespace string
	values                     []string
	registry                   content.RegistryFlags
}

func (f *renderFlags) check() error {
	switch {
	case f.folder == "" && (f.version != "" || f.namespace != "" || len(f.values) > 0):
		return errors.New("--values, --package and --namespace are about --render")
	case f.folder != "" && content.HasManifest(f.folder):
		return fmt.Errorf("--render %s holds a package already: name a new folder", f.folder)
	}
	return nil
}

// carvelVersion is a Package of the input.
type carvelVersion struct {
	name, version string
	app           map[string]any
}

func (v carvelVersion) String() string { return v.name + "/" + v.version }

// versionsOf are the Packages of the input, with those of inline repositories.
func versionsOf(documents []map[string]any) (found []carvelVersion, err error) {
	files := map[string][]byte{}
	offeredFiles(documents, files)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		docs, err := documentsOf(name, files[name])
		if err != nil {
			return nil, err
		}
		for _, doc := range docs {
			if kind, _ := doc["kind"].(string); kind != "Package" {
				continue
			}
			v := carvelVersion{}
			v.name, _, _ = unstructured.NestedString(doc, "spec", "refName")
			v.version, _, _ = unstructured.NestedString(doc, "spec", "version")
			v.app, _, _ = unstructured.NestedMap(doc, "spec", "template", "spec")
			found = append(found, v)
		}
	}
	return found, nil
}

// one chooses the Package to render.
func (f *renderFlags) one(documents []map[string]any) (carvelVersion, error) {
	all, err := versionsOf(documents)
	if err != nil {
		return carvelVersion{}, err
	}
	names := make([]string, len(all))
	for i, v := range all {
		if names[i] = v.String(); f.version == names[i] || f.version == "" && len(all) == 1 {
			return v, nil
		}
	}
	const most = 20
	switch listed := strings.Join(names[:min(len(names), most)], ", "); {
	case len(all) == 0:
		return carvelVersion{}, errors.New("there is no Package of data.packaging.carvel.dev in the input: --render makes a package of one")
	case f.version == "":
		return carvelVersion{}, fmt.Errorf("there are %d Packages in the input: choose one by --package NAME/VERSION, of %s", len(all), listed)
	default:
		return carvelVersion{}, fmt.Errorf("there is no Package %s in the input; there are %s", f.version, listed)
	}
}

func (c *importCommand) render(ctx context.Context, documents []map[string]any) error {
	v, err := c.renders.one(documents)
	if err != nil {
		return err
	}
	short, _, _ := strings.Cut(v.name, ".")
	source, steps, notes, err := carvel.Plan(v.app, short, c.renders.namespace)
	if err != nil {
		return fmt.Errorf("%s cannot be rendered: %w", v, err)
	}
	files, locked, err := c.fetched(ctx, source)
	if err != nil {
		return err
	}
	made, err := c.made(ctx, steps, files)
	if err != nil {
		return fmt.Errorf("%s cannot be rendered: %w", v, err)
	}
	if made, err = locked(made); err != nil {
		return err
	}
	opts := kickstart.Options{Name: short, Version: v.version, Namespace: c.renders.namespace}
	pkg, err := kickstart.Make([]kickstart.Input{{Name: v.String(), Data: made}}, opts)
	if err != nil {
		return content.Reported(c.Streams, err, "%s in what "+v.String()+" renders to: nothing was written")
	}
	manifest := strings.Replace(string(pkg.Files["manifest.yaml"]), "\nspec:\n", "\nspec:\n  packageName: "+v.name+"\n", 1)
	pkg.Files["manifest.yaml"] = []byte(manifest)
	pkg.Notes = append(notes, pkg.Notes...)
	return (&author.Kickstart{Streams: c.Streams}).Begin(ctx, c.renders.folder, opts, pkg)
}

// made runs the tools in a folder of their own.
func (c *importCommand) made(ctx context.Context, steps []carvel.Step, files loader.Files) ([]byte, error) {
	if !slices.ContainsFunc(steps, func(s carvel.Step) bool { return s.Tool != "" }) {
		return plainText(files), nil
	}
	values := make([]string, len(c.renders.values))
	for i, file := range c.renders.values {
		var err error
		if values[i], err = filepath.Abs(file); err == nil {
			_, err = os.Stat(file)
		}
		if err != nil {
			return nil, fmt.Errorf("read the values: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", "kubectl-package-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := content.WriteFiles(dir, files); err != nil {
		return nil, err
	}
	for _, step := range steps {
		if step.Tool != "" {
			fmt.Fprintln(c.Streams.ErrOut, terminal.Line("runs "+step.Tool+" "+strings.Join(step.Args, " ")))
		}
	}
	return carvel.Render(ctx, dir, steps, values)
}

func plainText(files loader.Files) (made []byte) {
	for _, p := range files.Paths() {
		if loader.IsPlainManifest(p) {
			made = slices.Concat(made, files[p], []byte("\n---\n"))
		}
	}
	return made
}

// fetched returns the files of a version, and what puts the images of their lock into what they render to.
func (c *importCommand) fetched(ctx context.Context, source carvel.Source) (loader.Files, func([]byte) ([]byte, error), error) {
	if source.Image == "" {
		files := loader.Files{}
		for p, text := range source.Files {
			files[p] = []byte(text)
		}
		return files, func(made []byte) ([]byte, error) { return made, nil }, nil
	}
	puller, err := c.renders.registry.Puller("", source.Image)
	if err != nil {
		return nil, nil, err
	}
	puller = puller.With(registry.Access{Selection: &archive.Selection{
		Keep: func(p string) bool { return filepath.IsLocal(p) }, Bytes: limits.KickstartBytes,
	}})
	image, err := puller.Pull(ctx, source.Image)
	if err != nil {
		return nil, nil, content.Advise(err)
	}
	ref, err := content.ImageReference("image", source.Image)
	if err != nil {
		return nil, nil, err
	}
	lock := image.Files[loader.ImagesLock]
	return image.Files, func(made []byte) ([]byte, error) {
		if lock == nil {
			return made, nil
		}
		const rendered = "rendered.yaml"
		files, err := fetch.Relocate(ctx, puller, ref.Context().Name(), ref.Context().Name(), image.Digest, loader.Files{rendered: made, loader.ImagesLock: lock})
		return files[rendered], err
	}, nil
}
