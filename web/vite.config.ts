import { defineConfig } from "vite";

// One script without imports and one style sheet, in a place that Rust includes at compile time.
export default defineConfig({
  build: {
    outDir: process.env["REPORT_OUT"] ?? "../crates/present/assets",
    emptyOutDir: false,
    copyPublicDir: false,
    target: "es2022",
    cssCodeSplit: false,
    lib: { entry: "src/main.ts", formats: ["iife"], name: "perflabReport", fileName: () => "report.js", cssFileName: "report" },
  },
});
