import { defineConfig } from "vitest/config";

// Tests that run the program itself; TIDEMARK_BINARY names it, or it is built.
export default defineConfig({
  test: {
    include: ["test/hub/**/*.test.ts"],
    environment: "node",
    testTimeout: 60_000,
    hookTimeout: 180_000,
  },
});
