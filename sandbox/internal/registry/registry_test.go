package registry

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func serveTest(t *testing.T, dir string) *httptest.Server {
	t.Helper()
	handler, err := newHandler(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func reference(t *testing.T, server *httptest.Server, suffix string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + suffix)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestRegistryKeepsAnIndexOverARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	index, err := random.Index(256, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	first := serveTest(t, dir)
	if err := remote.WriteIndex(reference(t, first, "/team/app:v1"), index); err != nil {
		t.Fatal(err)
	}
	first.Close()

	pulled, err := remote.Index(reference(t, serveTest(t, dir), "/team/app:v1"))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := index.Digest()
	if got, _ := pulled.Digest(); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func TestRegistryForgetsADeletedTag(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	image, err := random.Image(256, 1)
	if err != nil {
		t.Fatal(err)
	}

	first := serveTest(t, dir)
	if err := remote.Write(reference(t, first, "/app:old"), image); err != nil {
		t.Fatal(err)
	}
	if err := remote.Delete(reference(t, first, "/app:old")); err != nil {
		t.Fatal(err)
	}

	response, err := http.Get(serveTest(t, dir).URL + "/v2/app/manifests/old")
	if err != nil {
		t.Fatal(err)
	}

	defer response.Body.Close()
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("HTTP status %d for a deleted tag, want 404", response.StatusCode)
	}
}

func TestRegistryRefusesAHugeManifest(t *testing.T) {
	t.Parallel()
	server := serveTest(t, t.TempDir())
	body := strings.NewReader(strings.Repeat("x", maxManifestSize+1))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL+"/v2/app/manifests/big", body)
	if err != nil {
		t.Fatal(err)
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}

	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("HTTP status %d, want 413", response.StatusCode)
	}
}
