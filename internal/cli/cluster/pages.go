package cluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Numbers of objects in one response.
const (
	// PackagePage is for Packages and ObjectDeployments, of a few KiB each.
	PackagePage = 500
	// SetPage is for ObjectSets, which can have 1 MiB.
	SetPage = 50
)

// EachPage lists objects in pages of a size. list returns an empty list, and use gets each page.
func EachPage[L client.ObjectList](ctx context.Context, reader client.Reader, namespace string, size int64, list func() L, use func(L) error) error {
	for next := ""; ; {
		page := list()
		if err := reader.List(ctx, page, client.InNamespace(namespace), client.Limit(size), client.Continue(next)); err != nil {
			return err
		}
		if err := use(page); err != nil {
			return err
		}
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}
