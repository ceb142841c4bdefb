package schemas

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/limits"
)

// index has the location of each group version's document.
type index struct {
	read      time.Time
	locations map[string]openapi.GroupVersionWithContext
}

// of returns the location of a group version; nil if there is none.
func (x *index) of(gv schema.GroupVersion) openapi.GroupVersionWithContext {
	if gv.Group == "" {
		return x.locations["api/"+gv.Version]
	}
	return x.locations["apis/"+gv.Group+"/"+gv.Version]
}

func readIndex(ctx context.Context, client rest.Interface) (*index, error) {
	locations, err := openapi.NewClientWithContext(client).PathsWithContext(ctx)
	if err != nil && !apierrors.IsNotFound(err) { // without OpenAPI v3, no kind is described
		return nil, fmt.Errorf("read /openapi/v3: %w", err)
	}
	return &index{read: time.Now(), locations: locations}, nil
}

// fetch reads a document.
func fetch(ctx context.Context, from openapi.GroupVersionWithContext) ([]byte, error) {
	text, err := from.SchemaWithContext(ctx, runtime.ContentTypeJSON)
	if err == nil && len(text) > limits.SchemaDocumentBytes {
		err = fmt.Errorf("larger than the limit of %d bytes", limits.SchemaDocumentBytes)
	}
	return text, err
}

// pathOf names a document in messages.
func pathOf(from openapi.GroupVersionWithContext) string {
	path, _, _ := strings.Cut(from.ServerRelativeURL(), "?")
	return path
}
