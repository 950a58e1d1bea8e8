// All of CCCL that CuPy's header of complex numbers asks for.
#pragma once
#define THRUST_NAMESPACE_BEGIN namespace thrust {
#define THRUST_NAMESPACE_END }
