package objectsets

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// constants are the annotations by the names of their constants.
var constants = map[string]string{
	"ObjectDeploymentUIDAnnotation": corev1alpha1.ObjectDeploymentUIDAnnotation, "SlicedAnnotation": corev1alpha1.SlicedAnnotation,
	"SecretSlicedAnnotation": corev1alpha1.SecretSlicedAnnotation, "OrphanedAnnotation": corev1alpha1.OrphanedAnnotation,
	"PausedByParentAnnotation": corev1alpha1.PausedByParentAnnotation, "HashAnnotation": corev1alpha1.HashAnnotation,
	"PackageDigestAnnotation": corev1alpha1.PackageDigestAnnotation, "AwaitingActivationAnnotation": corev1alpha1.AwaitingActivationAnnotation,
	"RolledBackFromAnnotation": corev1alpha1.RolledBackFromAnnotation, "RejectedAnnotation": corev1alpha1.RejectedAnnotation,
	"ClaimedAnnotation": corev1alpha1.ClaimedAnnotation,
}

// Archived sets keep each annotation that is read from a set.
func TestKeptAnnotations(t *testing.T) {
	t.Parallel()
	// These receivers are not an archived set of a deployment: s.top() is a deployment, or a set
	// that stands alone, and u is an object of a revision.
	others := []string{"s.deployment", "s.top()", "owner", "u"}
	exempt := []string{
		"PackageSourceImageAnnotation", // of the revision in charge, and of those that own objects
	}
	read := map[string]bool{}
	for _, folder := range []string{".", "../controllers/objectdeployments"} {
		err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if constant, of := annotationRead(n); constant != "" && !slices.Contains(others, of) && !slices.Contains(exempt, constant) {
					read[constant] = true
					if !slices.Contains(keptAnnotations, constants[constant]) {
						t.Errorf("%s reads %s of %s, which archived sets lose: add it to keptAnnotations", path, constant, of)
					}
				}
				return true
			})
			return nil
		})
		require.NoError(t, err)
	}
	if len(read) != len(keptAnnotations) {
		t.Errorf("archived sets keep %d annotations; %d are read: %v", len(keptAnnotations), len(read), read)
	}
}

// annotationRead returns the constant X and the receiver of an expression
// receiver.GetAnnotations()[corev1alpha1.X].
func annotationRead(n ast.Node) (constant, receiver string) {
	index, ok := n.(*ast.IndexExpr)
	if !ok {
		return "", ""
	}
	call, isCall := index.X.(*ast.CallExpr)
	key, isConstant := index.Index.(*ast.SelectorExpr)
	if !isCall || !isConstant {
		return "", ""
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || method.Sel.Name != "GetAnnotations" {
		return "", ""
	}
	return key.Sel.Name, types.ExprString(method.X)
}
