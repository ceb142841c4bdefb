package repository

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/config"
)

// digest is the key of equal schemas and contents.
type digest [sha256.Size]byte

// schemas checks config schemas. Equal ones are checked once.
type schemas struct {
	// read has schemas by the digest of their text. compiled has problems by the digest of the part
	// that is compiled, which excludes titles, descriptions and examples.
	read     map[digest]checkedSchema
	compiled map[digest]string
	// cost is the total cost of the compiled schemas.
	cost int
}

// checkedSchema is a schema, or the reason why it is unusable. Both are unset for an empty schema.
type checkedSchema struct {
	schema  *runtime.RawExtension
	problem string
}

// schema returns a config schema that compiles, or reports why it does not.
func (r *reader) schema(at string, raw *runtime.RawExtension) (*runtime.RawExtension, bool) {
	c := r.checked(raw)
	if r.whole != nil {
		return nil, false
	}
	if c.problem != "" {
		r.fail(at, "Correct the schema; the version is not offered, because its configuration could not be checked.", "the schema does not compile: %s", c.problem)
		return nil, false
	}
	return c.schema, true
}

// foreignSchema returns the schema of a format that, unlike Kubernetes, does not require structural
// schemas. It leaves an unusable one out, and unchecked explains why.
func (r *reader) foreignSchema(raw *runtime.RawExtension) (schema *runtime.RawExtension, unchecked string) {
	c := r.checked(raw)
	switch {
	case c.problem == "":
		return c.schema, ""
	case r.opts.Withheld[r.doc.Path]:
		return nil, "its schema is not one that Kubernetes has"
	}
	problem := c.problem
	if len(problem) > limits.ConfigUncheckedBytes {
		problem = strings.ToValidUTF8(problem[:limits.ConfigUncheckedBytes], "") + "…"
	}
	return nil, "its schema is not one that Kubernetes has: " + printable(problem)
}

// checked sets whole if the schemas are too costly.
func (r *reader) checked(raw *runtime.RawExtension) checkedSchema {
	if raw == nil {
		return checkedSchema{}
	}

	key := digest(sha256.Sum256(raw.Raw))
	c, found := r.schemas.read[key]
	if !found {
		c = r.schemas.check(raw.Raw)
		r.schemas.read[key] = c
	}
	if r.schemas.cost > limits.RepositorySchemaCost {
		r.whole = fmt.Errorf("the config schemas of the repository are too costly to check: %d, by their number, size, rules, patterns and defaults; the limit is %d: "+
			"withdraw old versions, or split it into several repositories", r.schemas.cost, limits.RepositorySchemaCost)
	}

	return c
}

// check completes and compiles a schema. Numbers keep their text, because a float would change
// large integers.
func (s *schemas) check(raw []byte) checkedSchema {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return checkedSchema{problem: err.Error()}
	}

	m, isMap := value.(map[string]any)
	if value == nil || isMap && len(m) == 0 {
		return checkedSchema{}
	}
	if !isMap {
		return checkedSchema{problem: "it is not an object"}
	}
	if _, ok := m["type"]; !ok {
		m["type"] = "object"
	}

	walkSchema(m, false, complete)
	full, err := json.Marshal(m)
	if err != nil {
		return checkedSchema{problem: err.Error()}
	}

	// Only the structure is compiled: descriptions and the like are not part of the cache's key.
	walkSchema(m, false, strip)
	if problem := s.compile(m); problem != "" {
		return checkedSchema{problem: problem}
	}

	return checkedSchema{schema: &runtime.RawExtension{Raw: full}}
}

// compile returns why a schema does not compile.
func (s *schemas) compile(m map[string]any) string {
	data, err := json.Marshal(m)
	if err != nil {
		return err.Error()
	}

	key := digest(sha256.Sum256(data))
	problem, found := s.compiled[key]
	if found {
		return problem
	}
	if s.cost += costOf(m); s.cost > limits.RepositorySchemaCost {
		return ""
	}

	var props apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(data, &props); err != nil {
		problem = err.Error()
	} else if s.cost += min(config.DefaultWork(&props), limits.SchemaDefaultWork); s.cost > limits.RepositorySchemaCost {
		return ""
	} else {
		problem = compileSchema(&props)
	}

	s.compiled[key] = problem
	return problem
}

// compileSchema returns the first reason why a schema does not compile.
func compileSchema(props *apiextensionsv1.JSONSchemaProps) string {
	const root = "schema"
	if _, errs := config.Compile(context.Background(), field.NewPath(root), props); len(errs) > 0 {
		return strings.TrimPrefix(errs[0].Error(), root+".")
	}
	return ""
}
