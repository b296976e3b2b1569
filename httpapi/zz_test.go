package httpapi_test
import ("testing";"os")
func TestZZ(t *testing.T){ h:=newHarness(t); os.WriteFile("/tmp/tm/openapi.json", h.api.Document(),0o644)
 r:=h.call("GET","/docs","",nil); os.WriteFile("/tmp/tm/docs.html", r.body,0o644)}
