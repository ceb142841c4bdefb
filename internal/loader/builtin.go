package loader

import "k8s.io/apimachinery/pkg/runtime/schema"

// BuiltInScope returns the scope of a kind of Kubernetes or this engine.
func BuiltInScope(kind schema.GroupKind) (namespaced, known bool) { return builtInScope(kind) }
