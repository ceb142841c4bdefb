package schemas

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/limits"
)

// index says where the document of each group version is.
type index struct {
	read time.Time
	urls map[string]string
}

// pathOf is how the index names a group version.
func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}

func readIndex(ctx context.Context, client rest.Interface) (*index, error) {
	text, err := get(ctx, client, "/openapi/v3", limits.SchemaIndexBytes)
	if apierrors.IsNotFound(err) {
		// An API server without OpenAPI v3 describes nothing.
		return &index{read: time.Now()}, nil
	}
	if err != nil {
		return nil, err
	}
	var listed struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &listed); err != nil {
		return nil, fmt.Errorf("decode /openapi/v3: %w", err)
	}
	found := &index{read: time.Now(), urls: make(map[string]string, len(listed.Paths))}
	for path, entry := range listed.Paths {
		found.urls[path] = entry.URL
	}
	return found, nil
}

// get reads a URL relative to the API server, up to a limit of bytes.
func get(ctx context.Context, client rest.Interface, relative string, limit int64) ([]byte, error) {
	location, err := url.Parse(relative)
	if err != nil {
		return nil, fmt.Errorf("location of a schema: %w", err)
	}
	request := client.Get().AbsPath(location.Path).SetHeader("Accept", "application/json")
	for name, values := range location.Query() {
		for _, value := range values {
			request.Param(name, value)
		}
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", location.Path, err)
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", location.Path, err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("read %s: larger than the limit of %d bytes", location.Path, limit)
	}
	return text, nil
}
