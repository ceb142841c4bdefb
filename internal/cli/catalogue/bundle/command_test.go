package bundle_test

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/imagetest"
	"lockstep.run/lockstep/test/require"
)

const layoutVersion = `{"imageLayoutVersion":"1.0.0"}`

// An incomplete or invalid bundle is refused before the first push, and none of its files is
// written outside the scratch folder.
func TestBundleLoadRefuses(t *testing.T) {
	t.Parallel()
	host := imagetest.ServeRegistry(t)
	type entry struct {
		name, text string
		kind       byte
	}
	blob := "blobs/sha256/" + strings.Repeat("0", 64)
	for name, tc := range map[string]struct {
		entries []entry
		want    string
	}{
		"no tar":               {nil, "it is not a bundle: "},
		"a path out of it":     {[]entry{{"../escaped", "x", tar.TypeReg}}, `"../escaped" is not a file of an OCI layout`},
		"a link":               {[]entry{{"index.json", "", tar.TypeSymlink}}, `"index.json" is not a file of an OCI layout`},
		"another file":         {[]entry{{"oci-layout", layoutVersion, tar.TypeReg}, {"run.sh", "x", tar.TypeReg}}, `"run.sh" is not a file of an OCI layout`},
		"a blob that is not":   {[]entry{{blob, "x", tar.TypeReg}}, "the bundle is damaged: the blob sha256:0000"},
		"no index":             {[]entry{{"oci-layout", layoutVersion, tar.TypeReg}}, "it is not a bundle: "},
		"an index that is not": {[]entry{{"oci-layout", layoutVersion, tar.TypeReg}, {"index.json", "x", tar.TypeReg}}, "it is not a bundle: "},
		"no reference": {[]entry{{"oci-layout", layoutVersion, tar.TypeReg}, {
			"index.json", `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":1,"digest":"sha256:` + strings.Repeat("0", 64) + `"}]}`, tar.TypeReg,
		}}, "index.json: manifests[0]: the annotation org.opencontainers.image.ref.name is \"\", which is not a valid image reference"},
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
	host := imagetest.ServeRegistry(t)
	digest := imagetest.PushRandom(t, host+"/plain:v1")
	out := filepath.Join(t.TempDir(), "b.tar")
	for want, args := range map[string][]string{
		"IMAGE is missing":                                {"save", "-o", out},
		"add -o FILE":                                     {"save", host + "/plain:v1"},
		"is neither a package nor a repository":           {"save", host + "/plain@" + digest, "-o", out},
		`"A b" is not a valid image reference`:            {"save", "A b", "-o", out},
		`--to "" is not a valid prefix of images`:         {"load", out},
		`--to "mirror" is not a valid prefix of images`:   {"load", out, "--to", "mirror"},
		`--to "Mi rror/x" is not a valid prefix of image`: {"load", out, "--to", "Mi rror/x"},
		"no such file":                                    {"load", out, "--to", host + "/m"},
	} {
		if got := clitest.Invoke(t, "", append([]string{"bundle"}, args...)...); got.Code != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); len(found) != 0 {
		t.Errorf("a save that failed left %v", found)
	}
}

// Images that objects name in addition to the lock are saved, with a warning that the manager
// cannot redirect them.
func TestBundleOfObjects(t *testing.T) {
	t.Parallel()
	host := imagetest.ServeRegistry(t)
	imagetest.PushRandom(t, host+"/side:v1")
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

// The signatures that verify an image are saved, however its registry lists them.
func TestBundleOfSignatures(t *testing.T) {
	t.Parallel()
	const provenance = "https://slsa.dev/provenance/v1"
	of := func(artifactType, predicate string, digests ...v1.Hash) (list []v1.Descriptor) {
		for _, digest := range digests {
			d := v1.Descriptor{MediaType: types.OCIManifestSchema1, Digest: digest, Size: 1, ArtifactType: artifactType}
			if predicate != "" {
				d.Annotations = map[string]string{imagepolicy.PredicateAnnotation: predicate}
			}
			list = append(list, d)
		}
		return list
	}
	for name, tc := range map[string]struct {
		pages  func(signature v1.Hash) [][]v1.Descriptor
		saved  string
		warned bool
	}{
		"on the second page": {func(signature v1.Hash) [][]v1.Descriptor {
			return [][]v1.Descriptor{of("application/spdx+json", "", signature), of(imagepolicy.BundleMediaType, "", signature)}
		}, "2 images and 1 signature saved", false},
		"by the type of its configuration": {func(signature v1.Hash) [][]v1.Descriptor {
			return [][]v1.Descriptor{of(string(imagepolicy.EmptyConfig), "", signature)}
		}, "2 images and 1 signature saved", false},
		"among many attestations": {func(signature v1.Hash) [][]v1.Descriptor {
			many := of(imagepolicy.BundleMediaType, provenance, slices.Repeat([]v1.Hash{signature}, 2*limits.Signatures)...)
			return [][]v1.Descriptor{append(many, of(imagepolicy.BundleMediaType, imagepolicy.PredicateType, signature)...)}
		}, "2 images and 1 signature saved", false},
		"more than are read": {func(signature v1.Hash) [][]v1.Descriptor {
			return [][]v1.Descriptor{of(imagepolicy.BundleMediaType, "", slices.Repeat([]v1.Hash{signature}, limits.Signatures+3)...)}
		}, "2 images and 100 signatures saved", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var pages [][]v1.Descriptor
			inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.Contains(r.URL.Path, "/pkg/web/referrers/") {
					inner.ServeHTTP(w, r)
					return
				}
				n, _ := strconv.Atoi(r.URL.Query().Get("page"))
				if n+1 < len(pages) {
					w.Header().Set("Link", fmt.Sprintf(`<%s?page=%d>; rel="next"`, r.URL.Path, n+1))
				}
				w.Header().Set("Content-Type", string(types.OCIImageIndex))
				_ = json.NewEncoder(w).Encode(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: pages[n]})
			}))
			t.Cleanup(server.Close)
			host := strings.TrimPrefix(server.URL, "http://")
			image := host + "/pkg/web"
			imagetest.PushRandom(t, host+"/side:v1")
			dir := clitest.Folder(t, strings.ReplaceAll(clitest.GoodPackage, "image: web", "image: "+host+"/side:v1"))
			if got := clitest.Invoke(t, "", "build", clitest.Fixed(t, dir), "--push", "-t", image+":v1"); got.Code != 0 {
				t.Fatalf("%+v", got)
			}
			signature, err := v1.NewHash(imagetest.PushRandom(t, image+":signature"))
			require.NoError(t, err)
			pages = tc.pages(signature)
			got := clitest.Invoke(t, "", "bundle", "save", image+":v1", "-o", filepath.Join(t.TempDir(), "b.tar"))
			if got.Code != 0 || !strings.HasPrefix(got.Out, tc.saved) || strings.Contains(got.Err, "Warning: the image "+image+":v1 has at least 3 more signatures than the 100 that are saved") != tc.warned {
				t.Errorf("%+v", got)
			}
		})
	}
}
