package probes

import "fmt"

// JQ is a jq expression that reads one value of an object, within the functions and limits of
// probes.
type JQ struct{ program *jqProgram }

// CompileJQ compiles an expression. Its error names the refused part and a remedy.
func CompileJQ(text string) (*JQ, error) {
	program, err := jqPrograms.get(text, compileJQ)
	if err != nil {
		return nil, err
	}
	return &JQ{program}, nil
}

// Read returns the value; found is false if it is null or missing. The error of an evaluation can
// quote the object.
func (j *JQ) Read(root map[string]any) (value any, found bool, err error) {
	if value, found, err = j.program.read(&object{root: root}); err != nil {
		return nil, false, fmt.Errorf("jq: %w", err)
	}
	return value, found, nil
}
