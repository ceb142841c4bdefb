// Package config holds the manifests that install the engine in a cluster and
// embeds them, so that tests run the manager with exactly these objects and
// this RBAC.
//
//	kubectl apply --server-side -k config
//
// The folders are crds (generated), namespace, rbac, admission, flowcontrol,
// manager, and argocd, which is applied on its own.
package config
