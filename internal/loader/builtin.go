package loader

import "k8s.io/apimachinery/pkg/runtime/schema"

// BuiltInScope tells the scope of the kinds of Kubernetes and of this engine;
// known is false for all others.
func BuiltInScope(kind schema.GroupKind) (namespaced, known bool) { return builtInScope(kind) }
