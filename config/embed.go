package config

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Names of the objects that the manager and the tests refer to.
const (
	// ServiceAccount is the name of the manager's service account.
	ServiceAccount = "lockstep-manager"

	// ForegroundDeletionPolicy is the name of the ValidatingAdmissionPolicy that
	// refuses deletion in the foreground, and of its binding.
	ForegroundDeletionPolicy = "lockstep-foreground-deletion"

	// GeneratedPackagesPolicy is the name of the ValidatingAdmissionPolicy that guards
	// packages that the manager installed for others, and of its binding.
	GeneratedPackagesPolicy = "lockstep-generated-packages"
)

// Folders of the manifests.
const (
	// FolderNamespace has the namespace of the manager.
	FolderNamespace = "namespace"

	// FolderCRDs has the CustomResourceDefinitions.
	FolderCRDs = "crds"

	// FolderRBAC has the service account, its roles and the roles for people.
	FolderRBAC = "rbac"

	// FolderAdmission has the admission policies.
	FolderAdmission = "admission"

	// FolderFlowControl has the flow schemas and their priority level.
	FolderFlowControl = "flowcontrol"

	// FolderManager has the Deployment and its accompanying objects.
	FolderManager = "manager"

	// FolderTenancy has the additional objects for a cluster of several teams. As a component
	// it also adds a flag of the manager.
	FolderTenancy = "tenancy"

	// FolderRestricted has the rights of a manager that writes its own kinds alone; as a component
	// it also adds a flag of the manager.
	FolderRestricted = "restricted"

	// FolderAgent has the agent of a class of phases, which is installed on its own.
	FolderAgent = "agent"

	// FolderAgentAllNamespaces has the additional objects of an agent for all namespaces.
	FolderAgentAllNamespaces = "agent-all-namespaces"
)

// Files are the manifests, in the folders named above. Files named kustomization.yaml are not
// manifests.
//
//go:embed admission/*.yaml agent/*.yaml agent-all-namespaces/*.yaml crds/*.yaml flowcontrol/*.yaml manager/*.yaml namespace/*.yaml rbac/*.yaml restricted/*.yaml tenancy/*.yaml
var Files embed.FS

// Prerequisites returns the objects that a manager outside the cluster needs, in the order to
// apply them: everything but its Deployment.
func Prerequisites() ([]*unstructured.Unstructured, error) {
	return Objects(FolderNamespace, FolderCRDs, FolderRBAC, FolderAdmission, FolderFlowControl)
}

// Objects returns the objects of the folders, in the order of the folders, of
// their files by name, and of the documents in them.
func Objects(folders ...string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, folder := range folders {
		entries, err := fs.ReadDir(Files, folder)
		if err != nil {
			return nil, fmt.Errorf("read the manifests in config/%s: %w", folder, err)
		}
		for _, entry := range entries {
			if entry.Name() == "kustomization.yaml" {
				continue
			}
			found, err := decodeFile(path.Join(folder, entry.Name()))
			if err != nil {
				return nil, err
			}
			objects = append(objects, found...)
		}
	}
	return objects, nil
}

func decodeFile(name string) ([]*unstructured.Unstructured, error) {
	content, err := Files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read config/%s: %w", name, err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode config/%s: %w", name, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
