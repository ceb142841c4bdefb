package catalogue_test

import (
	"archive/tar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/cli/clitest"
	"lockstep.run/lockstep/internal/testing/require"
)

const layoutVersion = `{"imageLayoutVersion":"1.0.0"}`

// A file that is no bundle, or not whole, is refused before anything is pushed, and nothing of it is written outside.
func TestBundleLoadRefuses(t *testing.T) {
	t.Parallel()
	host := clitest.ServeRegistry(t)
	type entry struct {
		name, text string
		kind       byte
	}
	blob := "blobs/sha256/" + strings.Repeat("0", 64)
	for name, tc := range map[string]struct {
		entries []entry
		want    string
	}{
		"no tar":               {nil, "it is no bundle: "},
		"a path out of it":     {[]entry{{"../escaped", "x", tar.TypeReg}}, `"../escaped" is not a file of an OCI layout`},
		"a link":               {[]entry{{"index.json", "", tar.TypeSymlink}}, `"index.json" is not a file of an OCI layout`},
		"another file":         {[]entry{{"oci-layout", layoutVersion, tar.TypeReg}, {"run.sh", "x", tar.TypeReg}}, `"run.sh" is not a file of an OCI layout`},
		"a blob that is not":   {[]entry{{blob, "x", tar.TypeReg}}, "the bundle is damaged: the blob sha256:0000"},
		"no index":             {[]entry{{"oci-layout", layoutVersion, tar.TypeReg}}, "it is no bundle: "},
		"an index that is not": {[]entry{{"oci-layout", layoutVersion, tar.TypeReg}, {"index.json", "x", tar.TypeReg}}, "it is no bundle: "},
		"no reference": {[]entry{{"oci-layout", layoutVersion, tar.TypeReg}, {
			"index.json", `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":1,"digest":"sha256:` + strings.Repeat("0", 64) + `"}]}`, tar.TypeReg,
		}}, "index.json: manifests[0]: the annotation org.opencontainers.image.ref.name is \"\", which is no image reference"},
		"no blob of an image": {[]entry{{"oci-layout", layoutVersion, tar.TypeReg}, {
			"index.json", `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":1,"digest":"sha256:` + strings.Repeat("0", 64) + `","annotations":{"org.opencontainers.image.ref.name":"a.example.com/b:c"}}]}`, tar.TypeReg,
		}}, "push " + host + "/m/a.example.com/b:c: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "bundles", "b.tar")
			require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
			f, err := os.Create(file)
			require.NoError(t, err)
			w := tar.NewWriter(f)
			for _, e := range tc.entries {
				require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: e.kind, Name: e.name, Size: int64(len(e.text)), Mode: 0o600}))
				_, err := w.Write([]byte(e.text))
				require.NoError(t, err)
			}
			if len(tc.entries) == 0 {
				_, err = f.WriteString(strings.Repeat("no tar", 200))
				require.NoError(t, err)
			} else {
				require.NoError(t, w.Close())
			}
			require.NoError(t, f.Close())
			got := clitest.Invoke(t, "", "bundle", "load", file, "--to", host+"/m")
			if got.Code != 1 || !strings.Contains(got.Err, "Error: "+file+": ") || !strings.Contains(got.Err, tc.want) {
				t.Errorf("%+v", got)
			}
			if found, _ := filepath.Glob(filepath.Join(dir, "*")); len(found) != 1 {
				t.Errorf("there is %v", found)
			}
		})
	}
}

func TestBundleUsage(t *testing.T) {
	t.Parallel()
	host := clitest.ServeRegistry(t)
	digest := clitest.PushRandom(t, host+"/plain:v1")
	out := filepath.Join(t.TempDir(), "b.tar")
	for want, args := range map[string][]string{
		"IMAGE is missing":                       {"save", "-o", out},
		"add -o FILE":                            {"save", host + "/plain:v1"},
		"is neither a package nor a repository":  {"save", host + "/plain@" + digest, "-o", out},
		`"A b" is no image reference`:            {"save", "A b", "-o", out},
		`--to "" is no prefix of images`:         {"load", out},
		`--to "mirror" is no prefix of images`:   {"load", out, "--to", "mirror"},
		`--to "Mi rror/x" is no prefix of image`: {"load", out, "--to", "Mi rror/x"},
		"no such file":                           {"load", out, "--to", host + "/m"},
	} {
		if got := clitest.Invoke(t, "", append([]string{"bundle"}, args...)...); got.Code != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); len(found) != 0 {
		t.Errorf("a save that failed left %v", found)
	}
}

// Images that objects name beside the lock are saved, and it is said that the manager cannot redirect them.
func TestBundleOfObjects(t *testing.T) {
	t.Parallel()
	host := clitest.ServeRegistry(t)
	clitest.PushRandom(t, host+"/side:v1")
	dir := clitest.Folder(t, strings.ReplaceAll(clitest.GoodPackage, "image: web", "image: "+host+"/side:v1")+`
-- pod.yaml --
apiVersion: v1
kind: Pod
metadata: {name: side, annotations: {package-operator.run/phase: deploy}}
spec: {containers: [{name: side, image: "`+host+`/side:v1"}]}
`)
	if got := clitest.Invoke(t, "", "build", clitest.Fixed(t, dir), "--push", "-t", host+"/pkg/web:v1"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	out := filepath.Join(t.TempDir(), "b.tar")
	got := clitest.Invoke(t, "", "bundle", "save", host+"/pkg/web:v1", "-o", out)
	if got.Code != 0 || !strings.HasPrefix(got.Out, "2 images and 0 signatures saved") ||
		!strings.Contains(got.Err, "Warning: objects of the package "+host+"/pkg/web:v1 name the image "+host+"/side:v1, which is not in spec.images") {
		t.Errorf("%+v", got)
	}
}
