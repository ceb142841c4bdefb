package content

import (
	"context"
	"fmt"
	"io"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/describe"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader/config"
)

// PrintExample prints values that fit a schema. It lists on standard error the values that do not
// fit, for example because of rules.
func PrintExample(ctx context.Context, streams genericiooptions.IOStreams, schema *apiextensionsv1.JSONSchemaProps) error {
	example := describe.Example(schema)
	if _, err := io.WriteString(streams.Out, example); err != nil {
		return err
	}
	path := field.NewPath("values")
	compiled, errs := config.Compile(ctx, path, schema)
	if len(errs) > 0 {
		fmt.Fprintln(streams.ErrOut, terminal.Line("warning: the schema cannot be used: "+errs[0].Error()))
		return nil
	}

	raw, err := ParseConfig("the example", []byte(example))
	if err != nil || compiled == nil {
		return nil
	}
	// The example is checked as the manager would check it. Rules over several values cannot be
	// satisfied by a generated one.
	_, _, broken, errs := compiled.Admit(ctx, path, raw)
	for _, problem := range append(errs, broken...) {
		fmt.Fprintln(streams.ErrOut, terminal.Line("note: set "+strings.TrimPrefix(problem.Field, "values.")+": "+strings.TrimPrefix(problem.Error(), problem.Field+": ")))
	}

	return nil
}
