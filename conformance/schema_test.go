package conformance_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// schemas are the files of each kind of cases.
var schemas = map[string]string{
	"cases/*.json": "schema.json", "cases/hub/*.json": "schema.json",
	"cases/network/*.json":   "schema-network.json",
	"cases/client/*.json":    "schema-client.json",
	"cases/readstate/*.json": "schema-readstate.json",
}

// Every file is as its schema says, and the schema refuses what is not.
func TestSchemas(t *testing.T) {
	for pattern, name := range schemas {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var schema openapi3.Schema
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files, %v", len(files), err)
		}
		for _, file := range files {
			checkSchema(t, &schema, file)
		}
	}
}

func checkSchema(t *testing.T, schema *openapi3.Schema, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if err := schema.VisitJSON(v); err != nil {
		t.Errorf("%s: %v", file, err)
	}
	step := v["cases"].([]any)[0].(map[string]any)["steps"].([]any)[0].(map[string]any)
	for _, level := range []map[string]any{step, v} {
		level["surprise"] = true
		if schema.VisitJSON(v) == nil {
			t.Errorf("%s: the schema takes everything", file)
		}
		delete(level, "surprise")
	}
}
