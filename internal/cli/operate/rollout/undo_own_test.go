package rollout

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/testing/require"
)

// definitions is an API server with those of this version, and without other objects. Its user may not read ImageConfigs.
type definitions struct {
	client.Client
	all       map[string]*unstructured.Unstructured
	permitted []string
}

var errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "imageconfigs"}, "", errors.New("no"))

func (d *definitions) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.(*unstructured.Unstructured).Object = d.all[key.Name].DeepCopy().Object
	return nil
}

func (d *definitions) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if into.GetObjectKind().GroupVersionKind().Kind == "ImageConfigList" {
		return errForbidden
	}
	return nil
}

func (d *definitions) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	d.permitted = append(d.permitted, o.GetName())
	return nil
}

// The undo is done when definitions are compared: what cannot be read of one is a note, and the others are permitted.
func TestPermitDefinitions(t *testing.T) {
	t.Parallel()
	own, err := config.Objects(config.FolderCRDs)
	require.NoError(t, err)
	server := &definitions{all: map[string]*unstructured.Unstructured{}}
	var older []objectdiff.Object
	for _, crd := range own {
		server.all[crd.GetName()] = crd
		if name := crd.GetName(); name == "imageconfigs.package-operator.run" || name == "packages.package-operator.run" {
			former := crd.DeepCopy()
			versions, _, err := unstructured.NestedSlice(former.Object, "spec", "versions")
			require.NoError(t, err)
			unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties")
			require.NoError(t, unstructured.SetNestedSlice(former.Object, versions, "spec", "versions"))
			older = append(older, objectdiff.Object{Value: former.Object})
		}
	}
	var out, notes bytes.Buffer
	c := &undoCommand{Command: command.Command{Streams: genericiooptions.IOStreams{Out: &out, ErrOut: &notes}}}
	c.permitDefinitions(t.Context(), server, older)
	if len(server.permitted) != 1 || server.permitted[0] != "packages.package-operator.run" {
		t.Errorf("permitted: %v", server.permitted)
	}
	for _, want := range []string{"note: all but", "(imageconfigs.package-operator.run)", "forbidden", "phase crds: kubectl package rehearse --crds FILE"} {
		if !strings.Contains(notes.String(), want) || strings.Count(notes.String(), "\n") != 1 {
			t.Errorf("%q is not in the notes:\n%s", want, notes.String())
		}
	}
}
