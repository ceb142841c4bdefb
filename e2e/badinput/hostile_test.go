package badinput_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	ocitypes "github.com/google/go-containerregistry/pkg/v1/types"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

const gigabyte = 1 << 30

// hostileRows are images and registries that mean harm. The registries listen
// already; hosts are theirs.
func hostileRows(t *testing.T) (rows []row, hosts []string) {
	t.Helper()
	serve := func(handler http.HandlerFunc) string {
		server := httptest.NewUnstartedServer(handler)
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.Start()
		t.Cleanup(func() {
			server.CloseClientConnections()
			server.Close()
		})
		host := strings.TrimPrefix(server.URL, "http://")
		hosts = append(hosts, host)
		return host
	}
	rows = append(registryRows(serve), layerRows()...)
	return rows, hosts
}

// from returns a row whose image is served by a hostile registry.
func from(host, name string, texts ...string) row {
	return pullRow(name, func(*harness.Env) string { return host + "/bad:v1" }, texts...)
}

// registryRows are registries that misbehave.
func registryRows(serve func(http.HandlerFunc) string) []row {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	stalled := serve(hang)
	hanging := from(stalled, "a registry that hangs, and a dozen packages on it", "timeout", stalled, limits.ResponseHeaderTimeout.String(), "Ask the administrator of the registry")
	hanging.between = func(t *testing.T, env *harness.Env, ns string) {
		for i := range 11 {
			env.Create(t, harness.Package(ns, fmt.Sprintf("stuck-%02d", i), fmt.Sprintf("%s/stuck-%d:v1", stalled, i)))
		}
	}
	dripping := from(serve(fake{note: "drip", size: 1 << 20, blob: drip}.ServeHTTP), "never ends a body: a byte now and then", "timeout", fmt.Sprintf("less than %d bytes in %s", limits.StallBytes, limits.StallTimeout))
	var streamed atomic.Int64
	flooding := from(serve(fake{note: "flood", blob: flood(&streamed)}.ServeHTTP), "10 GB layer: streamed where 100 bytes were declared", "limit exceeded", "more than 100 bytes")
	flooding.after = func(t *testing.T, _ *harness.Env, _ string) {
		if n := streamed.Load(); n > 64<<20 {
			t.Errorf("%d bytes were read of a layer of 100 bytes", n)
		}
	}
	var asked atomic.Int64
	declared := from(serve(fake{note: "declared", size: 10 * gigabyte, blob: flood(&asked)}.ServeHTTP), "10 GB layer: declared", "limit exceeded", fmt.Sprint(10*gigabyte), fmt.Sprintf("the limit is %d", limits.LayerBytes))
	declared.after = func(t *testing.T, _ *harness.Env, _ string) {
		if n := asked.Load(); n > 0 {
			t.Errorf("%d bytes were read of a layer that is too large by its manifest", n)
		}
	}
	circle := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
	}
	return []row{
		hanging, dripping, flooding, declared,
		from(serve(fake{note: "endless", manifest: flood(new(atomic.Int64))}.ServeHTTP), "never ends a body: an endless manifest", "limit exceeded", fmt.Sprintf("more than %d bytes", limits.ImageManifestBytes)),
		from(serve(fake{note: "circle", blob: circle}.ServeHTTP), "redirects for ever", "limit exceeded", fmt.Sprintf("redirects more than %d times", limits.Redirects)),
		from(serve(fake{note: "layer", blob: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 100)) }}.ServeHTTP), "content of another digest: a layer", "digest mismatch", "sha256:"),
		from(serve(fake{note: "manifest", manifest: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"schemaVersion":2}`) }}.ServeHTTP), "content of another digest: a manifest", "digest mismatch", "sha256:"),
		from(serve(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) }), "a registry that fails", "registry unavailable", "500"),
	}
}

// fake is a registry that claims to have any image, with one layer.
type fake struct {
	// note makes the image one of its own.
	note string
	// size of the layer by the manifest; 0 means 100 bytes.
	size int64
	// manifest and blob answer GETs; nil manifest means an honest one.
	manifest, blob http.HandlerFunc
}

func (f fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.size == 0 {
		f.size = 100
	}
	body, digest := f.image()
	switch {
	case !strings.Contains(r.URL.Path, "/manifests/") && !strings.Contains(r.URL.Path, "/blobs/"):
		w.WriteHeader(http.StatusOK)
	case strings.Contains(r.URL.Path, "/blobs/"):
		f.blob(w, r)
	case r.Method == http.MethodGet && f.manifest != nil:
		f.manifest(w, r)
	default:
		w.Header().Set("Content-Type", string(ocitypes.OCIManifestSchema1))
		w.Header().Set("Docker-Content-Digest", digest)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(body)
		}
	}
}

// image returns the manifest and its digest.
func (f fake) image() (body []byte, digest string) {
	descriptor := func(mediaType ocitypes.MediaType, size int64) map[string]any {
		return map[string]any{"mediaType": mediaType, "size": size, "digest": "sha256:" + strings.Repeat("0", 64)}
	}
	body, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": ocitypes.OCIManifestSchema1, "annotations": map[string]string{"note": f.note},
		"config": descriptor(ocitypes.OCIConfigJSON, 2), "layers": []any{descriptor(ocitypes.OCIUncompressedLayer, f.size)},
	})
	if err != nil {
		panic(err)
	}
	hash, _, err := v1.SHA256(bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	return body, hash.String()
}

// flood sends 10 GB, as long as the client reads, and counts.
func flood(sent *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for block := make([]byte, 1<<20); sent.Load() < 10*gigabyte; {
			n, err := w.Write(block)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
}

// drip sends a byte now and then.
func drip(w http.ResponseWriter, r *http.Request) {
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
			_, _ = w.Write([]byte("x"))
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// layerRows are images whose layers mean harm.
func layerRows() []row {
	layer := func(name string, build func(t *testing.T) []byte, texts ...string) row {
		r := pullRow(name, nil, texts...)
		r.image = func(t *testing.T, env *harness.Env) string { return pushLayer(t, env, r.slug(), build(t)) }
		return r
	}
	one := func(header tar.Header) func(*testing.T) []byte {
		return func(t *testing.T) []byte {
			header.Mode = 0o644
			files := packageOf(harness.Files{"never.yaml": never("entry")})
			return zip(t, func(w *tar.Writer) {
				for path, content := range files {
					require.NoError(t, w.WriteHeader(&tar.Header{Name: "package/" + path, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}))
					_, err := io.WriteString(w, content)
					require.NoError(t, err)
				}
				require.NoError(t, w.WriteHeader(&header))
			})
		}
	}
	rows := []row{
		layer("gzip bomb: 10 GB in 10 MB", gzipBomb, "limit exceeded", fmt.Sprint(limits.UnpackedBytes)),
		layer("absolute path", one(tar.Header{Name: "/package/never", Typeflag: tar.TypeReg}), "/package/never", "absolute"),
		layer("path with two dots", one(tar.Header{Name: "package/../../etc/never", Typeflag: tar.TypeReg}), "package/../../etc/never", "leads out"),
		layer("symlink out", one(tar.Header{Name: "package/link.yaml", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}), "package/link.yaml", "symbolic link", "Only files and folders"),
		layer("hard link out", one(tar.Header{Name: "package/link.yaml", Linkname: "etc/shadow", Typeflag: tar.TypeLink}), "package/link.yaml", "hard link"),
	}
	if harness.Deep() { // which internal/loader/archive refuses in every run
		rows = append(rows,
			layer("tar bomb: 700 files of 15 MB", tarBomb, "limit exceeded", fmt.Sprint(limits.MemoryDefault/limits.MemoryPackageShare), "raise GOMEMLIMIT"),
			layer("a million files", millionFiles, "limit exceeded", fmt.Sprint(limits.PackageFiles)))
	}
	return rows
}

// pushLayer pushes an image of one compressed layer.
func pushLayer(t *testing.T, env *harness.Env, repository string, layer []byte) string {
	t.Helper()
	image, err := mutate.AppendLayers(empty.Image, static.NewLayer(layer, ocitypes.OCILayer))
	require.NoError(t, err)
	reference := env.Registry() + "/" + repository + ":v1"
	parsed, err := name.ParseReference(reference, name.Insecure)
	require.NoError(t, err)
	require.NoError(t, remote.Write(parsed, image, remote.WithContext(t.Context())))
	t.Logf("pushed %d bytes", len(layer))
	return reference
}

// zip returns a compressed archive.
func zip(t *testing.T, write func(*tar.Writer)) []byte {
	t.Helper()
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	require.NoError(t, err)
	w := tar.NewWriter(z)
	write(w)
	require.NoError(t, w.Flush())
	require.NoError(t, z.Close())
	return buf.Bytes()
}

// member returns a compressed stream of a header and zeros. Streams of gzip can
// be put one behind the other, so that a bomb is made without its 10 GB.
func member(t *testing.T, header *tar.Header, zeros int) []byte {
	t.Helper()
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	require.NoError(t, err)
	if header != nil {
		require.NoError(t, tar.NewWriter(z).WriteHeader(header))
	}
	_, err = z.Write(make([]byte, zeros))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return buf.Bytes()
}

func gzipBomb(t *testing.T) []byte {
	const block = 64 << 20
	bomb := member(t, &tar.Header{Name: "usr/lib/bomb", Mode: 0o644, Size: 10 * gigabyte, Typeflag: tar.TypeReg}, 0)
	return append(bomb, bytes.Repeat(member(t, nil, block), 10*gigabyte/block)...)
}

func tarBomb(t *testing.T) []byte {
	const size, files = 15 << 20, 700
	var bomb []byte
	content := member(t, nil, size)
	for i := range files {
		bomb = append(bomb, member(t, &tar.Header{Name: fmt.Sprintf("package/never-%03d.yaml", i), Mode: 0o644, Size: size, Typeflag: tar.TypeReg}, 0)...)
		bomb = append(bomb, content...)
	}
	return bomb
}

func millionFiles(t *testing.T) []byte {
	return zip(t, func(w *tar.Writer) {
		for i := range 1_000_000 {
			require.NoError(t, w.WriteHeader(&tar.Header{Name: fmt.Sprintf("package/never-%06d.yaml", i), Mode: 0o644, Typeflag: tar.TypeReg}))
		}
	})
}
