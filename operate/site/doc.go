// Package site tests the documentation as a site, which Hugo makes from the pages of docs/ with the
// layouts in the folder site: ./task site.
package site
