package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// enum is a field with a fixed set of values.
type enum struct {
	// definition and property name the field. The values apply to the elements of a list or a map.
	definition, property string
	values               []any
}

// readEnums reads the values of fields from the generated Go code, which has a function for each
// definition:
//
//	func schema_k8sio_api_core_v1_Container(…) … "imagePullPolicy": {SchemaProps: spec.SchemaProps{… Enum: []interface{}{"Always", …
func readEnums(file string) ([]enum, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}

	var found []enum
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		definition := definitionOf(function.Name.Name)
		if definition == "" {
			continue
		}
		for property, values := range enumsIn(function.Body) {
			found = append(found, enum{definition, property, values})
		}
	}

	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no enums", file)
	}

	return found, nil
}

// definitionOf returns the name of a definition from its function, such as
// schema_k8sio_api_core_v1_Container. It is empty for other modules' definitions.
func definitionOf(function string) string {
	for prefix, module := range map[string]string{
		"schema_k8sio_api_":              "io.k8s.api.",
		"schema_pkg_apis_apiextensions_": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.",
	} {
		if rest, ok := strings.CutPrefix(function, prefix); ok {
			return module + strings.ReplaceAll(rest, "_", ".")
		}
	}
	return ""
}

// enumsIn returns the values by property.
func enumsIn(body *ast.BlockStmt) map[string][]any {
	found := map[string][]any{}
	var property string
	ast.Inspect(body, func(node ast.Node) bool {
		pair, ok := node.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		switch key := pair.Key.(type) {
		case *ast.BasicLit:
			// The keys of extensions are texts as well, but their values are not schemas.
			if schema, isLiteral := pair.Value.(*ast.CompositeLit); isLiteral && schema.Type == nil {
				property = text(key)
			}
		case *ast.Ident:
			if values, isList := pair.Value.(*ast.CompositeLit); isList && key.Name == "Enum" {
				for _, element := range values.Elts {
					if literal, isText := element.(*ast.BasicLit); isText {
						found[property] = append(found[property], text(literal))
					}
				}
			}
		}
		return true
	})

	return found
}

func text(literal *ast.BasicLit) string {
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return literal.Value
	}
	return value
}

// addEnums writes the values into the definitions. Versions that are not served by default have no
// definition.
func addEnums(schemas map[string]map[string]any, enums []enum) error {
	added := 0
	for _, e := range enums {
		properties, _ := schemas[e.definition]["properties"].(map[string]any)
		at, _ := properties[e.property].(map[string]any)
		for _, inner := range []string{"items", "additionalProperties"} {
			if element, nested := at[inner].(map[string]any); nested {
				at = element
			}
		}
		if at != nil {
			at["enum"] = e.values
			added++
		}
	}

	if added < len(enums)/2 {
		return fmt.Errorf("only %d of %d enums belong to a definition: the generated code has changed", added, len(enums))
	}

	return nil
}
