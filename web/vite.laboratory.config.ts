import { defineConfig } from "vite";

// The script of the pages of `perflab serve`, in a place that Rust includes at compile time.
export default defineConfig({
  build: {
    outDir: process.env["REPORT_OUT"] ?? "../crates/serve/assets",
    emptyOutDir: false,
    copyPublicDir: false,
    target: "es2022",
    lib: { entry: "src/laboratory/main.ts", formats: ["iife"], name: "perflabLaboratory", fileName: () => "laboratory.js" },
  },
});
