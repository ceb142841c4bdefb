package lockfile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/lockfile"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/require"
)

func digest(n int) string { return "sha256:" + strings.Repeat(fmt.Sprint(n), 64) }

func manifestOf(spec string) []byte {
	return []byte("apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\nmetadata: {name: web}\nspec:\n  scopes: [Cluster]\n  phases: [{name: deploy}]\n" + spec)
}

const lockHead = "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifestLock\nspec:"

func options(resolved map[string]string, indexes ...*repository.Index) lockfile.Options {
	return lockfile.Options{
		Resolve: func(_ context.Context, ref string) (string, error) {
			if d, ok := resolved[ref]; ok {
				return d, nil
			}
			return "", errors.New("there is no image " + ref)
		},
		Repository: func(_ context.Context, source manifestsv1alpha1.PackageManifestRepository) (*repository.Index, error) {
			for _, x := range indexes {
				if x.Name == source.File {
					return x, nil
				}
			}
			return nil, errors.New("there is no repository " + source.File)
		},
	}
}

func TestCompute(t *testing.T) {
	t.Parallel()
	resolved := map[string]string{"a:v1": digest(1), "b:v1": digest(2)}
	wantA := lockHead + "\n  images:\n  - digest: " + digest(1) + "\n    image: a:v1\n    name: a\n"
	images := manifestOf("  images: [{name: a, image: 'a:v1'}]\n")
	type file struct {
		Path, Data string
		Changed    bool
	}

	for name, tc := range map[string]struct {
		reason string
		files  loader.Files
		want   []file
		err    string
	}{
		"no images":      {reason: "no lock is needed", files: loader.Files{"manifest.yaml": manifestOf("")}},
		"no lock":        {reason: "it is made", files: loader.Files{"manifest.yaml": images}, want: []file{{"manifest.lock.yaml", wantA, true}}},
		"current":        {reason: "nothing to write", files: loader.Files{"manifest.yaml": images, "manifest.lock.yaml": []byte(wantA)}, want: []file{{"manifest.lock.yaml", wantA, false}}},
		"other form":     {reason: "the content counts, not the form", files: loader.Files{"manifest.yaml": images, "manifest.lock.yaml": []byte("# c\n" + wantA)}, want: []file{{"manifest.lock.yaml", wantA, false}}},
		"moved":          {reason: "the tag points to another digest", files: loader.Files{"manifest.yaml": images, "manifest.lock.yaml": []byte(strings.ReplaceAll(wantA, "1111", "3333"))}, want: []file{{"manifest.lock.yaml", wantA, true}}},
		"yml":            {reason: "the name stays", files: loader.Files{"manifest.yml": images, "manifest.lock.yml": []byte(lockHead + " {}")}, want: []file{{"manifest.lock.yml", wantA, true}}},
		"broken lock":    {reason: "it is put right", files: loader.Files{"manifest.yaml": images, "manifest.lock.yaml": []byte("a: [")}, want: []file{{"manifest.lock.yaml", wantA, true}}},
		"nothing left":   {reason: "entries that the manifest does not name are removed", files: loader.Files{"manifest.yaml": manifestOf(""), "manifest.lock.yaml": []byte(wantA)}, want: []file{{"manifest.lock.yaml", lockHead + " {}\n", true}}},
		"two locks":      {reason: "which one counts is not known", files: loader.Files{"manifest.yaml": images, "manifest.lock.yml": []byte(wantA), "manifest.lock.yaml": []byte(wantA)}, err: "PackageManifestLock present multiple times"},
		"no image":       {reason: "all that cannot be resolved are named", files: loader.Files{"manifest.yaml": manifestOf("  images: [{name: x, image: 'x:v1'}, {name: y, image: 'y:v1'}]\n")}, err: "resolving image digest: image \"x\": there is no image x:v1\nresolving image digest: image \"y\": there is no image y:v1"},
		"no manifest":    {reason: "there is no package", files: loader.Files{"a.yaml": nil}, err: "PackageManifest not found"},
		"wrong manifest": {reason: "no entry is written for it", files: loader.Files{"manifest.yaml": manifestOf("  images: [{name: '', image: ''}]\n")}, err: "spec.images[0].name: Required value"},
		"components": {
			reason: "each has its own",
			files: loader.Files{
				"manifest.yaml": manifestOf("  components: {}\n"), "components/back/manifest.yaml": images,
				"components/front/manifest.yaml": manifestOf("  images: [{name: b, image: 'b:v1'}]\n"), "components/front/manifest.lock.yml": []byte(lockHead + " {}"),
			},
			want: []file{
				{"components/back/manifest.lock.yaml", wantA, true},
				{"components/front/manifest.lock.yml", strings.NewReplacer("1", "2", "a:v1", "b:v1", "name: a", "name: b", "v1alpha1", "v1alpha1").Replace(wantA), true},
			},
		},
		"component fails": {
			reason: "it is named", err: "component back: resolving image digest: image \"x\": there is no image x:v1",
			files: loader.Files{"manifest.yaml": manifestOf("  components: {}\n"), "components/back/manifest.yaml": manifestOf("  images: [{name: x, image: 'x:v1'}]\n")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, err := lockfile.Compute(t.Context(), tc.files, options(resolved))
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err, tc.reason)
				return
			}
			require.NoError(t, err)
			var got []file
			for _, l := range locks {
				got = append(got, file{l.Path, string(l.Data), l.Changed})
			}
			want := tc.want
			if name == "components" { // the 1 in v1alpha1 is not a digest
				want[1].Data = lockHead + "\n  images:\n  - digest: " + digest(2) + "\n    image: b:v1\n    name: b\n"
			}
			require.Equal(t, want, got, tc.reason)
		})
	}
}

func entry(n int, version string, constraints ...manifestsv1alpha1.PackageManifestConstraint) repository.Entry {
	return repository.Entry{
		RepositoryEntryData: manifestsv1alpha1.RepositoryEntryData{Name: "db.core", Image: "example.com/db", Digest: digest(n), Constraints: constraints},
		Versions:            []*semver.Version{semver.MustParse(version)},
	}
}

func retracted(e repository.Entry) repository.Entry {
	e.Retracted = "it loses orders"
	return e
}

func kubernetes(text string) manifestsv1alpha1.PackageManifestConstraint {
	return manifestsv1alpha1.PackageManifestConstraint{PlatformVersion: &manifestsv1alpha1.PackageManifestPlatformVersionConstraint{Name: "Kubernetes", Range: text}}
}

func lockstep(text string) manifestsv1alpha1.PackageManifestConstraint {
	return manifestsv1alpha1.PackageManifestConstraint{PlatformVersion: &manifestsv1alpha1.PackageManifestPlatformVersionConstraint{Name: "Lockstep", Range: text}}
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	openShift := manifestsv1alpha1.PackageManifestConstraint{Platform: []manifestsv1alpha1.PlatformName{"OpenShift"}}
	for name, tc := range map[string]struct {
		reason      string
		entries     []repository.Entry
		versions    string
		constraints string
		want        string
		err         string
	}{
		"highest":                {"in the range, not at all", []repository.Entry{entry(1, "1.0.0"), entry(2, "1.2.0"), entry(3, "2.0.0")}, "^1", "", "v1.2.0", ""},
		"prerelease":             {"only if the range requires it", []repository.Entry{entry(1, "1.0.0"), entry(2, "1.1.0-rc.1")}, ">=1", "", "v1.0.0", ""},
		"named prerelease":       {"the range requires it", []repository.Entry{entry(1, "1.0.0"), entry(2, "1.1.0-rc.1")}, ">=1.0.0-0", "", "v1.1.0-rc.1", ""},
		"none in range":          {"the message has the known versions", []repository.Entry{entry(1, "1.0.0"), entry(2, "2.0.0")}, "^3", "", "", `db.core.shop: no version fits: of 2, these are left: 0 within "^3"; nearest: 2.0.0 is not within "^3", 1.0.0 is not within "^3"`},
		"retracted":              {"it is not for new installations", []repository.Entry{entry(1, "1.0.0"), retracted(entry(2, "1.2.0"))}, "^1", "", "v1.0.0", ""},
		"retracted by name":      {"the range is this version", []repository.Entry{entry(1, "1.0.0"), retracted(entry(2, "1.2.0"))}, "1.2.0", "", "v1.2.0", ""},
		"all retracted":          {"the message has the reason", []repository.Entry{retracted(entry(1, "1.0.0"))}, "^1", "", "", "1.0.0 is retracted: it loses orders"},
		"platform":               {"this package is for Kubernetes, too", []repository.Entry{entry(1, "1.0.0"), entry(2, "1.2.0", openShift)}, "^1", "", "v1.0.0", ""},
		"same platform":          {"both are for OpenShift only", []repository.Entry{entry(1, "1.0.0"), entry(2, "1.2.0", openShift)}, "^1", "[{platform: [OpenShift]}]", "v1.2.0", ""},
		"no platform":            {"nothing covers", []repository.Entry{entry(1, "1.0.0", openShift)}, "^1", "", "", "1.0.0 cannot be installed: spec.constraints permits platforms that it is not for"},
		"narrower versions":      {"1.29 is in this package's range only", []repository.Entry{entry(1, "1.0.0"), entry(2, "1.2.0", kubernetes(">=1.30"))}, "^1", "[{platformVersion: {name: Kubernetes, range: '>=1.29'}}]", "v1.0.0", ""},
		"wider versions":         {"all of this package's range", []repository.Entry{entry(1, "1.0.0"), entry(2, "1.2.0", kubernetes(">=1.28, <2"))}, "^1", "[{platformVersion: {name: Kubernetes, range: '>=1.29, <1.35'}}]", "v1.2.0", ""},
		"a hole in the versions": {"one version is missing", []repository.Entry{entry(1, "1.0.0"), entry(2, "1.2.0", kubernetes(">=1.28, !=1.30.2"))}, "^1", "[{platformVersion: {name: Kubernetes, range: '>=1.29, <1.35'}}]", "v1.0.0", ""},
		"very many versions":     {"too many to look at all of them", []repository.Entry{entry(1, "1.0.0"), entry(2, "1.2.0", kubernetes(strings.Repeat(">=1.0 || ", 400)+">=1.0"), kubernetes(strings.Repeat(">=1.1 || ", 400)+">=1.1"))}, "^1", "", "v1.0.0", ""},
		"another manager":        {"0.2 of Lockstep is in this package's range only", []repository.Entry{entry(1, "1.0.0"), entry(2, "1.2.0", lockstep(">=0.3"))}, "^1", "[{platformVersion: {name: Lockstep, range: '>=0.2'}}]", "v1.0.0", ""},
		"the same manager":       {"all of this package's range", []repository.Entry{entry(1, "1.0.0"), entry(2, "1.2.0", lockstep(">=0.3"))}, "^1", "[{platformVersion: {name: Lockstep, range: '>=0.3'}}]", "v1.2.0", ""},
		"any version":            {"this package states none", []repository.Entry{entry(1, "1.0.0"), entry(2, "1.2.0", kubernetes(">=1.30"))}, "^1", "", "v1.0.0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := &repository.Index{Name: "shop"}
			for _, e := range tc.entries {
				require.NoError(t, x.Add(e))
			}
			spec := "  repositories: [{file: shop}]\n  dependencies: [{image: {name: db, package: db.core.shop, range: '" + tc.versions + "'}}]\n"
			if tc.constraints != "" {
				spec += "  constraints: " + tc.constraints + "\n"
			}
			locks, err := lockfile.Compute(t.Context(), loader.Files{"manifest.yaml": manifestOf(spec)}, options(nil, x))
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err, tc.reason)
				return
			}
			require.NoError(t, err)
			got := string(locks[0].Data)
			if !strings.Contains(got, "version: "+tc.want+"\n") || !strings.Contains(got, "digest: sha256:") || !strings.Contains(got, "name: db\n") {
				t.Errorf("%s: got\n%s", tc.reason, got)
			}
		})
	}
}

func TestDependenciesWithoutRepository(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ spec, want string }{
		"none":    {"  dependencies: [{image: {name: db, package: db.shop, range: '^1'}}]\n", "spec.repositories holds: none"},
		"missing": {"  repositories: [{file: nope}]\n  dependencies: [{image: {name: db, package: db.shop, range: '^1'}}]\n", "there is no repository nope"},
		"twice":   {"  repositories: [{file: shop}, {file: shop}]\n  dependencies: [{image: {name: db, package: db.shop, range: '^1'}}]\n", "two of spec.repositories have the name shop"},
	} {
		_, err := lockfile.Compute(t.Context(), loader.Files{"manifest.yaml": manifestOf(tc.spec)}, options(nil, &repository.Index{Name: "shop"}))
		require.ErrorContains(t, err, tc.want, name)
	}
}
