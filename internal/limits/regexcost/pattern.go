package regexcost

import (
	"fmt"
	"regexp/syntax"

	"lockstep.run/lockstep/internal/limits"
)

// LimitError is a limit that an expression exceeds.
type LimitError struct{ text string }

// Error implements error.
func (e *LimitError) Error() string { return e.text }

func limitf(format string, args ...any) error { return &LimitError{fmt.Sprintf(format, args...)} }

// Size returns the size of an expression's program in instructions.
func Size(expression string) (int, error) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("the regular expression cannot be read: %w", err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, fmt.Errorf("the regular expression cannot be read: %w", err)
	}
	return len(program.Inst), nil
}

// Check rejects an expression that is invalid, or costs too much for a text of a length: a
// *LimitError.
func Check(expression string, length int) error {
	if n := len(expression); n > limits.TemplatePatternBytes {
		return limitf("a pattern has %d bytes; the limit is %d", n, limits.TemplatePatternBytes)
	}
	size, err := Size(expression)
	if err != nil {
		return err
	}
	if int64(size)*int64(length) > limits.TemplateMatchWork {
		return limitf("a regular expression of %d instructions over %d bytes; the limit of the product is %d", size, length, limits.TemplateMatchWork)
	}
	return nil
}
