package objects

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Reference is one owner of an object: either an owner reference, or an entry of OwnersAnnotation,
// which takes the place of an owner reference if the owner is in another cluster.
type Reference struct {
	metav1.OwnerReference
	// Remote means that the owner is in another cluster. Namespace is its namespace there. Cluster
	// is the UID of that cluster's namespace kube-system; empty if an earlier engine wrote the
	// entry.
	Remote    bool
	Namespace string
	Cluster   types.UID
}

// entry is an element of OwnersAnnotation.
type entry struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	Namespace  string    `json:"namespace"`
	UID        types.UID `json:"uid"`
	Controller *bool     `json:"controller,omitempty"`
	Cluster    types.UID `json:"cluster,omitempty"`
}

// References returns the owners that an object names: first its owner references, then the entries
// of OwnersAnnotation. It ignores an unreadable annotation.
func (n *Names) References(refs []metav1.OwnerReference, annotations map[string]string) []Reference {
	text := annotations[n.OwnersAnnotation]
	if len(refs) == 0 && text == "" {
		return nil
	}

	var entries []entry
	if text != "" {
		_ = json.Unmarshal([]byte(text), &entries)
	}

	all := make([]Reference, 0, len(refs)+len(entries))
	for _, ref := range refs {
		ref.BlockOwnerDeletion = nil // no decision depends on it
		all = append(all, Reference{OwnerReference: ref})
	}

	for _, e := range entries {
		all = append(all, Reference{
			OwnerReference: metav1.OwnerReference{APIVersion: e.APIVersion, Kind: e.Kind, Name: e.Name, UID: e.UID, Controller: e.Controller},
			Remote:         true, Namespace: e.Namespace, Cluster: e.Cluster,
		})
	}

	return all
}

// OwnersValue returns the value of OwnersAnnotation for the remote owners among the references;
// empty if there are none.
func OwnersValue(refs []Reference) string {
	var entries []entry
	for _, r := range refs {
		if r.Remote {
			entries = append(entries, entry{
				APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name, Namespace: r.Namespace, UID: r.UID, Controller: r.Controller, Cluster: r.Cluster,
			})
		}
	}

	if len(entries) == 0 {
		return ""
	}

	text, _ := json.Marshal(entries) // strings can always be encoded
	return string(text)
}
