package output

// Shapes are values of the types that commands print with -o json, by the names of the commands. A command with flags that print another
// type has one for each. The JSON Schemas in docs/schemas/outputs are made of them.
type Shapes map[string][]any
