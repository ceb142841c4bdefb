// Package testrunner runs the tests that a package brings: its test cases,
// compared with fixtures, and checks of its objects against schemas.
//
//	folder/.test-fixtures/<case>/                     of the root
//	folder/components/<name>/.test-fixtures/<case>/   of a component
//
// A fixture folder holds what the templates render to in one case, file by file;
// other files of the package are not in it. Comparison is of
// text: comments and layout count. Unlike Package Operator's, a folder that is
// missing is not made unless that is asked for: a test that writes down what it
// expects cannot fail.
//
// Everything that is read or written stays within the folder of the package.
package testrunner
